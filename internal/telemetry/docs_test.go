package telemetry

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// described returns the labels of every metric, by its name.
func described(t *testing.T) map[string][]string {
	t.Helper()
	tel := New()
	out := make(chan *prometheus.Desc, 100)
	for _, c := range slices.Concat(tel.http.all(), tel.sched.all(), []prometheus.Collector{gauges{}, sentinels{}}) {
		c.Describe(out)
	}
	close(out)
	shape := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	all := map[string][]string{}
	for d := range out {
		m := shape.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("the description %s has no name or no labels", d)
		}
		all[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
	}
	return all
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestDocsDescribeEveryMetric compares docs/observability.md with the metrics and their labels.
func TestDocsDescribeEveryMetric(t *testing.T) {
	documented := map[string][]string{}
	rows := regexp.MustCompile("(?m)^\\| `(lessor_[a-z_]+)` \\| (?:counter|gauge|histogram) \\| ([^|]*)\\|")
	for _, m := range rows.FindAllStringSubmatch(string(read(t, "../../docs/observability.md")), -1) {
		documented[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return strings.ContainsRune("`, ", r) })
	}
	if diff := cmp.Diff(described(t), documented); diff != "" {
		t.Errorf("metrics (-) and docs/observability.md (+) differ:\n%s", diff)
	}
}

// unknown returns the metrics, and the labels in matchers, that an expression names but that do not exist.
func unknown(expr string, metrics map[string][]string) (all []string) {
	used := regexp.MustCompile(`\b(lessor_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(expr, -1)
	if len(used) == 0 && !strings.Contains(expr, "up{") {
		return []string{"no metric at all"}
	}
	for _, m := range used {
		name := m[1]
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, part); ok {
				name = base
			}
		}
		labels, ok := metrics[name]
		if !ok {
			all = append(all, m[1])
			continue
		}
		for _, l := range regexp.MustCompile(`(\w+)\s*[=!]~?`).FindAllStringSubmatch(m[2], -1) {
			if l[1] != "instance" && l[1] != "job" && !slices.Contains(labels, l[1]) {
				all = append(all, m[1]+"{"+l[1]+"}")
			}
		}
	}
	return all
}

func TestUnknownFindsWhatDoesNotExist(t *testing.T) {
	metrics := map[string][]string{"lessor_a": {"kind"}, "lessor_h_seconds": nil}
	for expr, want := range map[string]string{
		`sum(rate(lessor_a{kind=~"x|y",instance="n"}[5m])) / lessor_h_seconds_count`: "",
		`lessor_b > 1`:             "lessor_b",
		`lessor_a{tenant!="x"}`:    "lessor_a{tenant}",
		`rate(process_cpu[1m])`:    "no metric at all",
		`up{job="lessor"} == 0`:    "",
		`lessor_a or lessor_c_sum`: "lessor_c_sum",
	} {
		if got := strings.Join(unknown(expr, metrics), " "); got != want {
			t.Errorf("%s: found %q, want %q", expr, got, want)
		}
	}
}

// grafana is the part of the Grafana dashboard that tests read.
type grafana struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		Targets []struct{ Expr string }
	}
}

func readGrafana(t *testing.T) grafana {
	t.Helper()
	var g grafana
	if err := json.Unmarshal(read(t, "../../deploy/grafana/lessor.json"), &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGrafanaShowsMetricsThatExist checks the expressions of every panel.
func TestGrafanaShowsMetricsThatExist(t *testing.T) {
	metrics, ids, shown := described(t), map[int]bool{}, 0
	for _, p := range readGrafana(t).Panels {
		if ids[p.ID] {
			t.Errorf("panel %q has the id %d of another panel", p.Title, p.ID)
		}
		ids[p.ID] = true
		if len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("panel %q has no expression", p.Title)
		}
		for _, target := range p.Targets {
			shown++
			for _, what := range unknown(target.Expr, metrics) {
				t.Errorf("panel %q: %s does not exist", p.Title, what)
			}
		}
	}
	if shown < 20 {
		t.Errorf("%d expressions were found, want at least 20", shown)
	}
}

// TestAlertRulesWatchMetricsThatExist checks the expression of every rule.
func TestAlertRulesWatchMetricsThatExist(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert       string
				Expr        string
				For         string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	raw := read(t, "../../deploy/prometheus/alerts.yaml")
	if err := yaml.UnmarshalWithOptions(raw, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	metrics, seen := described(t), map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || seen[r.Alert] {
				t.Errorf("rule %q has no name, or that of another rule", r.Alert)
			}
			seen[r.Alert] = true
			s, about := r.Labels["severity"], r.Annotations
			if s != "critical" && s != "warning" || about["summary"] == "" || about["description"] == "" {
				t.Errorf("%s lacks a severity, a summary or a description", r.Alert)
			}
			for _, what := range unknown(r.Expr, metrics) {
				t.Errorf("%s: %s does not exist", r.Alert, what)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d rules were found, want at least 10", len(seen))
	}
}
