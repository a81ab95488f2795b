package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"lessor"
	"lessor/internal/scheduler"
)

// deployed is the folder of the files that users install in Prometheus.
const deployed = "../../deploy/prometheus"

// program returns the path of a program of Prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("no %s; `make test` installs it (Debian: apt-get install prometheus): %v", name, err)
	}
	return path
}

// TestPrometheusRunsTheAlertRules runs promtool, which checks the rules and runs alerts_test.yaml. That file must have
// a case in which each alert fires, and one in which it does not.
func TestPrometheusRunsTheAlertRules(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"},
	} {
		cmd := exec.CommandContext(t.Context(), program(t, "promtool"), args...)
		cmd.Dir = deployed
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	var file struct {
		Tests []struct {
			Cases []struct {
				Alert string           `yaml:"alertname"`
				Fires []map[string]any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(deployed, "alerts_test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			if len(c.Fires) > 0 {
				fires[c.Alert] = true
			} else {
				silent[c.Alert] = true
			}
		}
	}
	alerts := read(t, filepath.Join(deployed, "alerts.yaml"))
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllSubmatch(alerts, -1) {
		if name := string(m[1]); !fires[name] || !silent[name] {
			t.Errorf("%s has a case that fires: %v, one that does not: %v; want both", name, fires[name], silent[name])
		}
	}
}

// TestPrometheusAcceptsMetricsRulesAndQueries runs a Prometheus that scrapes a node, loads the rules, and answers
// every query of the Grafana dashboard.
func TestPrometheusAcceptsMetricsRulesAndQueries(t *testing.T) {
	tel := New()
	tel.Gauges(func() (scheduler.Figures, bool) { return scheduler.Figures{}, true })
	tel.Sentinels(func() lessor.HeartbeatSummary { return lessor.HeartbeatSummary{} })
	node := httptest.NewServer(tel.Handler())
	defer node.Close()
	ask := startPrometheus(t, strings.TrimPrefix(node.URL, "http://"))
	scraped := func() bool {
		answer := ask("query", "query", `lessor_ticks_total{outcome="missed",job="lessor"}`)
		return strings.Contains(answer, `"outcome":"missed"`)
	}
	for end := time.Now().Add(20 * time.Second); !scraped(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("Prometheus has not scraped lessor_ticks_total in 20 s")
		}
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		answer := ask("rules", "type", "alert")
		if err := json.Unmarshal([]byte(answer), &rules); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(answer, `"health":"unknown"`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("Prometheus has not evaluated all rules in 20 s: %s", answer)
		}
	}
	if len(rules.Data.Groups) != 1 || len(rules.Data.Groups[0].Rules) < 10 {
		t.Fatalf("loaded %+v, want one group with at least 10 rules", rules)
	}
	for _, r := range rules.Data.Groups[0].Rules {
		if r.Health != "ok" {
			t.Errorf("rule %s: health %s, want ok: %s", r.Name, r.Health, r.LastError)
		}
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")
	for _, p := range readGrafana(t).Panels {
		for _, target := range p.Targets {
			answer := ask("query", "query", variables.Replace(target.Expr))
			if !strings.HasPrefix(answer, `{"status":"success"`) {
				t.Errorf("panel %q: %s: got %s, want success", p.Title, target.Expr, answer)
			}
		}
	}
}

// startPrometheus runs a Prometheus that scrapes target as the docs say, and returns a function that calls its API.
func startPrometheus(t *testing.T, target string) (ask func(what, name, value string) string) {
	t.Helper()
	rules, err := filepath.Abs(filepath.Join(deployed, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: lessor, static_configs: [{targets: [%q]}]}]\n", rules, target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	cmd := exec.Command(program(t, "prometheus"), "--config.file", "prometheus.yml", "--storage.tsdb.path", "data",
		"--web.listen-address", addr, "--log.level", "error")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return func(what, name, value string) string {
		t.Helper()
		r, err := http.Get("http://" + addr + "/api/v1/" + what + "?" + name + "=" + url.QueryEscape(value))
		if err != nil {
			return err.Error() // Prometheus is still starting
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		return string(body)
	}
}
