package cli

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"lessor/internal/config"
)

// container is one that runs this program: its command line, its variables, and how long the platform lets it stop.
type container struct {
	argv  []string
	env   map[string]string
	grace time.Duration // 0 = it is never asked to stop commands
}

// TestDeployedFiles reads every file of deploy that starts this program. The platform must know each field, this
// program each flag and variable, and both must agree on the time that a stop takes. docs/long-jobs.md shows the files
// as they are.
func TestDeployedFiles(t *testing.T) {
	document, err := os.ReadFile("../../docs/long-jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, read := range map[string]func(*testing.T, []byte) []container{
		"kubernetes/worker.yaml": readKubernetes, "kubernetes/one-job.yaml": readKubernetes,
		"compose/compose.yaml": readCompose, "systemd/lessor-work.service": readUnit,
	} {
		t.Run(file, func(t *testing.T) {
			raw, err := os.ReadFile("../../deploy/" + file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(document), "\n"+string(raw)+"```\n") {
				t.Error("docs/long-jobs.md does not show it as it is")
			}
			all := read(t, raw)
			if len(all) == 0 {
				t.Error("it starts nothing")
			}
			for _, c := range all {
				c.check(t)
			}
		})
	}
}

// check compares what a platform starts with the command of that name.
func (c container) check(t *testing.T) {
	t.Helper()
	if filepath.Base(c.argv[0]) != "lessor" {
		t.Fatalf("%q does not start lessor", c.argv)
	}
	cmd, args, err := (&app{}).rootCommand().Find(c.argv[1:])
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.ParseFlags(args); err != nil {
		t.Errorf("%s: %v", cmd.CommandPath(), err)
	}
	if rest := cmd.Flags().Args(); cmd.Name() != "serve" && len(rest) == 0 {
		t.Errorf("%s runs no command", cmd.CommandPath())
	}
	if f := cmd.Flags().Lookup("stop-grace"); f != nil {
		if d, err := time.ParseDuration(f.Value.String()); err != nil || d != c.grace {
			t.Errorf("--stop-grace is %s, the platform waits for %s", f.Value, c.grace)
		}
	}
	own := []string{"LESSOR_SERVER", "LESSOR_TOKEN", "LESSOR_LEASE_ID", "LESSOR_WORKER"}
	for name := range c.env {
		known := slices.ContainsFunc(config.Keys(), func(k config.Key) bool { return k.Env() == name })
		if !known && !slices.Contains(own, name) {
			t.Errorf("%s is no variable of this program", name)
		}
	}
}

// readKubernetes knows the fields that a Deployment and a Job of this project have.
func readKubernetes(t *testing.T, raw []byte) []container {
	t.Helper()
	type names map[string]string
	var m struct {
		APIVersion string                `yaml:"apiVersion"`
		Kind       string                `yaml:"kind"`
		Metadata   struct{ Name string } `yaml:"metadata"`
		Spec       struct {
			Replicas int `yaml:"replicas"`
			Selector struct {
				MatchLabels names `yaml:"matchLabels"`
			} `yaml:"selector"`
			BackoffLimit            *int `yaml:"backoffLimit"`
			TTLSecondsAfterFinished int  `yaml:"ttlSecondsAfterFinished"`
			Template                struct {
				Metadata struct{ Labels names } `yaml:"metadata"`
				Spec     struct {
					RestartPolicy                 string `yaml:"restartPolicy"`
					TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
					EnableServiceLinks            *bool  `yaml:"enableServiceLinks"`
					Containers                    []struct {
						Name, Image   string
						Command, Args []string
						Env           []struct {
							Name, Value string
							ValueFrom   struct {
								SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
							} `yaml:"valueFrom"`
						}
						VolumeMounts []struct {
							Name      string
							MountPath string `yaml:"mountPath"`
						} `yaml:"volumeMounts"`
					} `yaml:"containers"`
					Volumes []struct {
						Name     string
						EmptyDir *struct{} `yaml:"emptyDir"`
					} `yaml:"volumes"`
				} `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	if err := yaml.UnmarshalWithOptions(raw, &m, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	pod := m.Spec.Template.Spec
	switch m.APIVersion + " " + m.Kind {
	case "apps/v1 Deployment":
		if !maps.Equal(m.Spec.Selector.MatchLabels, m.Spec.Template.Metadata.Labels) {
			t.Error("the selector does not find the pods")
		}
	case "batch/v1 Job":
		if pod.RestartPolicy != "Never" || m.Spec.BackoffLimit == nil || *m.Spec.BackoffLimit != 0 {
			t.Error("Kubernetes would retry what Lessor retries")
		}
	default:
		t.Errorf("unknown kind %s of %s", m.Kind, m.APIVersion)
	}
	var all []container
	for _, k := range pod.Containers {
		c := container{
			slices.Concat(k.Command, k.Args),
			map[string]string{},
			time.Duration(pod.TerminationGracePeriodSeconds) * time.Second,
		}
		for _, e := range k.Env {
			c.env[e.Name] = e.Value
		}
		for _, v := range k.VolumeMounts {
			if !slices.Contains(c.argv, v.MountPath) || len(pod.Volumes) != 1 || pod.Volumes[0].Name != v.Name {
				t.Errorf("volume %s is not there, or not used", v.Name)
			}
		}
		all = append(all, c)
	}
	return all
}

func readCompose(t *testing.T, raw []byte) (all []container) {
	t.Helper()
	var m struct {
		Services map[string]struct {
			Image, Restart   string
			Command, Volumes []string
			Environment      map[string]string
			StopGracePeriod  string `yaml:"stop_grace_period"`
		} `yaml:"services"`
		Volumes map[string]struct{} `yaml:"volumes"`
	}
	if err := yaml.UnmarshalWithOptions(raw, &m, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for name, s := range m.Services {
		grace, err := time.ParseDuration(s.StopGracePeriod)
		if err != nil && s.StopGracePeriod != "" {
			t.Errorf("%s: %v", name, err)
		}
		for _, v := range s.Volumes {
			if named, _, _ := strings.Cut(v, ":"); !mapHas(m.Volumes, named) {
				t.Errorf("%s: volume %s is not there", name, named)
			}
		}
		all = append(all, container{s.Command, s.Environment, grace})
	}
	return all
}

func mapHas[V any](m map[string]V, key string) bool { _, ok := m[key]; return ok }

// readUnit also has systemd check the unit, where it is installed.
func readUnit(t *testing.T, raw []byte) []container {
	t.Helper()
	c := container{env: map[string]string{}}
	text := strings.ReplaceAll(string(raw), "\\\n", " ")
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		switch key, value, _ := strings.Cut(lines.Text(), "="); key {
		case "ExecStart":
			c.argv = strings.Fields(value)
		case "Environment":
			name, set, _ := strings.Cut(value, "=")
			c.env[name] = set
		case "TimeoutStopSec":
			c.grace, _ = time.ParseDuration(value) // 0 equals no --stop-grace
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return []container{c}
	}
	unit := filepath.Join(t.TempDir(), "lessor-work.service") // with a program and a user that exist
	text = strings.NewReplacer("/usr/local/bin/lessor", "/bin/true", "User=lessor", "User=root").Replace(string(raw))
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil ||
		strings.Contains(string(out), filepath.Base(unit)) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	return []container{c}
}
