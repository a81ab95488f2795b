package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"lessor/agent"
	"lessor/worker"
)

func executor(t testing.TB, tools ...agent.Tool) *agent.Executor {
	t.Helper()
	e, err := agent.NewExecutor(agent.ExecutorConfig{Tools: tools, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// tool is a tool without arguments.
func tool(name string, call func(ctx context.Context, t *agent.ToolContext) (string, error)) agent.Tool {
	return agent.Tool{Name: name, Call: func(ctx context.Context, t *agent.ToolContext, _ json.RawMessage) (string,
		error,
	) {
		return call(ctx, t)
	}}
}

// countsOf returns what was counted for one tool.
func countsOf(t testing.TB, e *agent.Executor, name string) agent.ToolCounts {
	t.Helper()
	for _, c := range e.Counts() {
		if c.Tool == name {
			return c
		}
	}
	t.Fatalf("nothing was counted for %q", name)
	return agent.ToolCounts{}
}

func TestExecutorBeatsBeforeAndAfterEveryTool(t *testing.T) {
	for name, call := range map[string]func(context.Context, *agent.ToolContext) (string, error){
		"works":  func(context.Context, *agent.ToolContext) (string, error) { return "done", nil },
		"fails":  func(context.Context, *agent.ToolContext) (string, error) { return "", errors.New("no such file") },
		"panics": func(context.Context, *agent.ToolContext) (string, error) { panic("index out of range") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var hb worker.Heartbeat
				began := time.Now()
				var beats []time.Duration
				hb.Observe(func() { beats = append(beats, time.Since(began)) })
				e := executor(t, tool("t", func(ctx context.Context, tc *agent.ToolContext) (string, error) {
					time.Sleep(90 * time.Second)
					return call(ctx, tc)
				}))
				got := e.Execute(t.Context(), agent.ToolCall{Name: "t"}, agent.Vitals{Heartbeat: &hb})
				if diff := cmp.Diff([]time.Duration{0, 90 * time.Second}, beats); diff != "" {
					t.Errorf("beats (-want +got):\n%s", diff)
				}
				want := map[string]string{
					"works": "done", "fails": "error: no such file",
					"panics": "error: tool t panicked: index out of range",
				}[name]
				if got.Text != want || got.Role != agent.ToolRole {
					t.Errorf("the model gets %+v, want %q", got, want)
				}
				wantCounts := agent.ToolCounts{Tool: "t", Calls: 1, Beats: 2, LongestSilence: 90 * time.Second}
				if name != "works" {
					wantCounts.Failures = 1
				}
				if diff := cmp.Diff(wantCounts, countsOf(t, e, "t")); diff != "" {
					t.Errorf("counts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestUnknownToolIsReportedToTheModel(t *testing.T) {
	got := executor(t).Execute(t.Context(), agent.ToolCall{ID: "c", Name: "fly"}, agent.Vitals{})
	if got.Text != `error: there is no tool "fly"` || got.CallID != "c" {
		t.Errorf("the model gets %+v", got)
	}
}

func TestBeatsOfWhatAToolLeftRunningDoNotCount(t *testing.T) {
	var hb worker.Heartbeat
	beats := 0
	hb.Observe(func() { beats++ })
	var left *agent.ToolContext
	e := executor(t, tool("t", func(_ context.Context, tc *agent.ToolContext) (string, error) {
		left = tc
		return "",
			nil
	}))
	e.Execute(t.Context(), agent.ToolCall{Name: "t"}, agent.Vitals{Heartbeat: &hb})
	left.Beat()
	if beats != 2 {
		t.Errorf("%d beats, want those before and after the tool alone", beats)
	}
}

func TestLongResultIsCut(t *testing.T) {
	e := executor(t, tool("t", func(context.Context, *agent.ToolContext) (string, error) {
		return strings.Repeat("é", 64<<10) + "\xff", nil
	}))
	got := e.Execute(t.Context(), agent.ToolCall{Name: "t"}, agent.Vitals{}).Text
	if len(got) > 65<<10 || !strings.HasSuffix(got, "é\n[65539 bytes more were left out]") {
		t.Errorf("the model gets %d bytes that end in %q", len(got), got[len(got)-40:])
	}
}

// message is a message whose extensions succeed until fail is set.
type message struct {
	worker.Message
	fail bool
}

func (*message) ID() string { return "m-1" }

func (m *message) Extend(context.Context, time.Duration) error {
	if m.fail {
		return worker.ErrReceiptExpired
	}
	return nil
}

// attached returns vitals whose beats extend m.
func attached(t testing.TB, m worker.Message, cfg worker.LeaseExtenderConfig) agent.Vitals {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	v := agent.Vitals{Heartbeat: &worker.Heartbeat{}, Extender: worker.NewLeaseExtender(cfg)}
	detach, err := v.Extender.Attach(t.Context(), m, v.Heartbeat)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(detach)
	return v
}

func TestExtensionsAreCountedForTheToolThatBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &message{}
		v := attached(t, m, worker.LeaseExtenderConfig{Interval: time.Second})
		beat := func(n int) func(context.Context, *agent.ToolContext) (string, error) {
			return func(_ context.Context, tc *agent.ToolContext) (string, error) {
				for range n {
					time.Sleep(time.Second)
					tc.Beat()
				}
				return "", nil
			}
		}
		e := executor(t, tool("often", beat(3)), tool("once", beat(1)))
		e.Execute(t.Context(), agent.ToolCall{Name: "often"}, v)
		m.fail = true
		e.Execute(t.Context(), agent.ToolCall{Name: "once"}, v)
		want := []agent.ToolCounts{
			{Tool: "(model)"},
			{Tool: "often", Calls: 1, Beats: 5, Extensions: 4, LongestSilence: time.Second},
			{Tool: "once", Calls: 1, Beats: 3, ExtensionFailures: 2, LongestSilence: time.Second},
		}
		if diff := cmp.Diff(want, e.Counts()); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	})
}

func TestIntervalAdaptsToToolsThatAreSilentForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The lease lasts 300 s. It was extended 50 s before the start of a tool that is silent for 190 s at a time.
		v := attached(t, &message{}, worker.LeaseExtenderConfig{})
		slow := tool("slow", func(context.Context, *agent.ToolContext) (string, error) {
			time.Sleep(190 * time.Second)
			return "", nil
		})
		quick := tool("quick", func(context.Context, *agent.ToolContext) (string, error) { return "", nil })
		e := executor(t, slow, quick)
		for range 3 {
			e.Execute(t.Context(), agent.ToolCall{Name: "quick"}, v)
			time.Sleep(50 * time.Second)
			e.Execute(t.Context(), agent.ToolCall{Name: "slow"}, v)
		}
		// The first call extends only at its end. Later calls, whose silence is known, also extend at the start.
		if got := countsOf(t, e, "slow").Extensions; got != 5 {
			t.Errorf("%d extensions, want 1 at the first call, 2 at each later one", got)
		}
		made, _ := v.Extender.Counts()
		time.Sleep(20 * time.Second)
		v.Heartbeat.Beat() // not the slow tool's, and inside the interval of a minute
		if got, _ := v.Extender.Counts(); got != made {
			t.Error("the interval stayed short after the tool")
		}
		if got := countsOf(t, e, "quick"); got.Extensions != 1 {
			t.Errorf("%d extensions of a tool that is never silent, want only the first", got.Extensions)
		}
	})
}

func TestToolSilentForLongerThanTheLeaseIsNamedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		hang := tool("hang", func(context.Context, *agent.ToolContext) (string, error) {
			time.Sleep(time.Hour)
			return "", nil
		})
		e, err := agent.NewExecutor(agent.ExecutorConfig{
			Tools: []agent.Tool{hang},
			Log:   slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		v := attached(t, &message{}, worker.LeaseExtenderConfig{})
		for range 3 {
			e.Execute(t.Context(), agent.ToolCall{Name: "hang"}, v)
		}
		if got := log.String(); strings.Count(got, "tool=hang") != 1 || !strings.Contains(got, "silence=1h0m0s") {
			t.Errorf("logged %q", got)
		}
	})
}

func TestLongSilenceFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		naps := []time.Duration{80 * time.Second, 0, 0}
		e := executor(t, tool("t", func(context.Context, *agent.ToolContext) (string, error) {
			time.Sleep(naps[0])
			naps = naps[1:]
			return "", nil
		}))
		for range 3 {
			e.Execute(t.Context(), agent.ToolCall{Name: "t"}, agent.Vitals{Heartbeat: &worker.Heartbeat{}})
		}
		if got := countsOf(t, e, "t").LongestSilence; got != 61250*time.Millisecond { // 80 s × 7/8 × 7/8
			t.Errorf("the silence of two calls ago weighs %s", got)
		}
	})
}

func TestCountsAreMetrics(t *testing.T) {
	e := executor(t, tool("t", func(context.Context, *agent.ToolContext) (string, error) {
		return "",
			errors.New("no")
	}))
	e.Execute(t.Context(), agent.ToolCall{Name: "t"}, agent.Vitals{Heartbeat: &worker.Heartbeat{}})
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(e.Metrics())
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == "t" {
				got[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	want := map[string]float64{
		"lessor_agent_tool_calls_total": 1, "lessor_agent_tool_failures_total": 1, "lessor_agent_beats_total": 2,
		"lessor_agent_extensions_total": 0, "lessor_agent_extension_failures_total": 0,
		"lessor_agent_longest_silence_seconds": 0,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
