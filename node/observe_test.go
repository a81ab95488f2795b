package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/scheduler"
	"lessor/internal/telemetry"
)

// TestMetricsCountTheWork runs a job and a schedule whose circuit opens, and reads the metrics.
func TestMetricsCountTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := servePipe(t, testConfig(t))
		if _, err := c.Submit(t.Context(), "mail", nil, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		work(t, c, "completed")
		if _, err := c.Apply(t.Context(), nightly(60,
			func(e *lessor.Envelope) { e.MaxAttempts = new(int64(1)) })); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			work(t, c, "failed")
		}
		time.Sleep(150 * time.Second)
		w := httptest.NewRecorder()
		n.telemetry.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, want := range []string{
			`lessor_queue_wait_seconds_bucket{le="4.096"} 5`, `lessor_queue_wait_seconds_count 6`,
			`lessor_attempt_duration_seconds_count{outcome="failed"} 5`,
			`lessor_attempt_duration_seconds_count{outcome="completed"} 1`,
			`lessor_ticks_total{outcome="fired"} 5`, `lessor_ticks_total{outcome="circuitOpen"} 2`,
			`lessor_circuits{state="open"} 1`, `lessor_circuits{state="halfOpen"} 0`,
			`lessor_alerts_open{kind="circuit_open"} 1`,
		} {
			if !strings.Contains(w.Body.String(), "\n"+want+"\n") {
				name, _, _ := strings.Cut(want, "{")
				t.Errorf("the metrics lack %s; they have\n%s", want, linesWith(w.Body.String(), name))
			}
		}
	})
}

func linesWith(text, part string) string {
	var found []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "\n")
}

func TestLogFollowsItsLevel(t *testing.T) {
	var out bytes.Buffer
	log, level := leveled(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), "warn")
	log = log.With("node", "a").WithGroup("g")
	log.Info("quiet")
	log.Warn("loud")
	level.Set(slog.LevelDebug)
	log.Debug("chatty", "k", "v")
	if got := out.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "loud") ||
		!strings.Contains(got, "msg=chatty node=a g.k=v") {
		t.Errorf("want the lines loud and chatty with their attributes, and not quiet; logged:\n%s", got)
	}
}

// TestFaultIsLoggedOnceAndCounted: a panic that was caught is counted, and logged with its place, value, stack and
// calls.
func TestFaultIsLoggedOnceAndCounted(t *testing.T) {
	var out bytes.Buffer
	n := &Node{log: slog.New(slog.NewTextHandler(&out, nil)), telemetry: telemetry.New()}
	f := &fault.Fault{Place: fault.Loop, Value: "boom", Stack: []byte("main.go:7"), Calls: []string{"submit 1: mail"}}
	n.fault(f)
	n.logCommit(scheduler.Stats{Err: fmt.Errorf("a pass: %w", f)})
	got := out.String()
	for _, want := range []string{"place=loop", "boom", "main.go:7", "submit 1: mail"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("the log has %q %d times, want once:\n%s", want, strings.Count(got, want), got)
		}
	}
	w := httptest.NewRecorder()
	n.telemetry.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if want := `lessor_faults_total{place="loop"} 1`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// TestConflictIsLoggedForDebuggingOnly: a commit that is repeated after a conflict with another node is logged for
// debugging only.
func TestConflictIsLoggedForDebuggingOnly(t *testing.T) {
	var out bytes.Buffer
	n := &Node{log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, c := range []struct {
		stats scheduler.Stats
		want  string
	}{
		{scheduler.Stats{}, ""},
		{scheduler.Stats{Err: scheduler.ErrAgain, Repeated: true}, "level=DEBUG"},
		{scheduler.Stats{Err: scheduler.ErrAgain}, "level=ERROR"},
		{scheduler.Stats{Err: scheduler.ErrFull}, "level=ERROR"},
	} {
		out.Reset()
		n.logCommit(c.stats)
		if got := out.String(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: logged %q, want %q", c.stats, got, c.want)
		}
	}
}
