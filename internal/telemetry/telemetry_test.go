package telemetry

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// endRequest begins a request and ends it after a while, by the clock of the bubble.
func endRequest(t *Telemetry, took time.Duration, status int) {
	r := t.Begin()
	time.Sleep(took)
	r.End("/x", "GET", status)
}

func TestWindowRatesOnlyTheLastMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := New()
		if p95, share, flight, n := tel.APIWindow(time.Now()); p95 != 0 || share != 0 || flight != 0 || n != 0 {
			t.Fatalf("without requests: p95 %v, share %v, in flight %d, requests %d; want zeros", p95, share, flight, n)
		}
		for range 90 {
			endRequest(tel, 100*time.Millisecond, 200)
		}
		for range 10 {
			endRequest(tel, 900*time.Millisecond, 503)
		}
		p95, share, flight, n := tel.APIWindow(time.Now())
		if p95 < 800 || p95 > 1000 || share != 0.1 || flight != 0 || n != 100 {
			t.Fatalf("p95 %v, share %v, in flight %d, requests %d; want about 900, 0.1, 0, 100", p95, share, flight, n)
		}
		time.Sleep(61 * time.Second)
		if p95, share, _, n := tel.APIWindow(time.Now()); p95 != 0 || share != 0 || n != 0 {
			t.Fatalf("a minute later: p95 %v, share %v, requests %d; want zeros", p95, share, n)
		}
	})
}

func TestHeldAndIgnoredRequestsAreNotRated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := New()
		poll, stream, health, plain := tel.Begin(), tel.Begin(), tel.Begin(), tel.Begin()
		poll.Hold("poll")
		stream.Hold("stream")
		health.Ignore()
		if _, _, flight, _ := tel.APIWindow(time.Now()); flight != 1 {
			t.Errorf("%d requests in flight, want only the plain one", flight)
		}
		time.Sleep(20 * time.Second)
		poll.End("/poll", "POST", 500)
		stream.End("/events", "GET", 500)
		health.End("/health/ready", "GET", 503)
		p95, share, flight, n := tel.APIWindow(time.Now())
		if p95 != 0 || share != 1 || flight != 1 || n != 1 {
			t.Errorf("p95 %v, share %v, in flight %d, requests %d; want 0, 1 (the poll failed), 1, 1", p95, share,
				flight, n)
		}
		plain.End("/x", "GET", 200)
		if _, _, flight, _ := tel.APIWindow(time.Now()); flight != 0 {
			t.Errorf("%d requests in flight at the end, want 0", flight)
		}
	})
}

// TestPercentileIsWithinTenPercent: the window must distinguish both sides of each threshold of the busy rating.
func TestPercentileIsWithinTenPercent(t *testing.T) {
	for _, ms := range []float64{0.05, 1, 40, 380, 430, 760, 850, 1400, 1600, 30000} {
		var w window
		now := time.Unix(1000, 0)
		for range 200 {
			w.add(now, time.Duration(ms*float64(time.Millisecond)), 200)
		}
		s := w.at(now)
		got := percentile(s.latency[:], s.timed, 0.95)
		if ms >= 1 && (got < ms*0.9 || got > ms*1.1) {
			t.Errorf("p95 is %v ms, want %v ms within 10 %%", got, ms)
		}
	}
}

func scrape(t *testing.T, tel *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	b, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("scrape: status %d, %v; want 200", w.Code, err)
	}
	return string(b)
}

func TestScrapeShowsWhatHappened(t *testing.T) {
	tel := New()
	ready := false
	tel.Gauges(func() (scheduler.Figures, bool) {
		s := lessor.Status{ActiveLeases: 3, Draining: true, QueueDepth: lessor.QueueDepth{Low: 7}}
		s.LeasedUnits, s.Busy = 12, 8
		return scheduler.Figures{
			Status: s, Circuits: map[lessor.CircuitState]int{lessor.CircuitOpen: 2},
			Alerts: map[lessor.AlertKind]int{lessor.AlertNoWorker: 4},
		}, ready
	})
	tel.Sentinels(func() lessor.HeartbeatSummary { return lessor.HeartbeatSummary{Fresh: 5, Stale: 1} })
	if strings.Contains(scrape(t, tel), "lessor_queue_depth") {
		t.Error("the metrics show figures before they are known")
	}
	ready = true
	tel.Observe(scheduler.Stats{
		Calls: 5, Took: time.Millisecond, Submitted: 2, Granted: 1, Beats: 4,
		Denied: map[lessor.DenialCode]int{lessor.NoCapacity: 3}, MassExpiry: true,
		Waited: []time.Duration{3 * time.Millisecond}, Ticks: map[lessor.TickOutcome]int{lessor.TickSkipped: 2},
		Ended: []scheduler.EndedAttempt{
			{Outcome: rules.OutcomeCompleted, Took: time.Second}, {Outcome: rules.OutcomeCompleted, Took: time.Minute},
		},
	})
	tel.Observe(scheduler.Stats{Calls: 1, Submitted: 100, Err: fmt.Errorf("commit: %w", scheduler.ErrFull)})
	tel.Observe(scheduler.Stats{Calls: 1, Err: errors.New("odd")})
	r := tel.Begin()
	r.End("/a/{id}", "BREW", 404)
	tel.Begin().End("", "GET", 404)
	got := scrape(t, tel)
	for _, want := range []string{
		`lessor_queue_depth{priority="low"} 7`, `lessor_capacity_units{kind="leased"} 12`, `lessor_busy_rating 8`,
		`lessor_active_leases 3`, `lessor_draining 1`,
		`lessor_jobs_submitted_total 2`, `lessor_leases_granted_total 1`, `lessor_heartbeats_total 4`,
		`lessor_lease_denials_total{code="no_capacity"} 3`, `lessor_leases_ended_total{outcome="completed"} 2`,
		`lessor_attempt_duration_seconds_sum{outcome="completed"} 61`, `lessor_queue_wait_seconds_bucket{le="0.001"} 0`,
		`lessor_queue_wait_seconds_bucket{le="0.004"} 1`, `lessor_ticks_total{outcome="skipped"} 2`,
		`lessor_circuits{state="open"} 2`, `lessor_circuits{state="halfOpen"} 0`,
		`lessor_alerts_open{kind="no_worker"} 4`,
		`lessor_alerts_open{kind="hung"} 0`, `lessor_sentinels{verdict="fresh"} 5`,
		`lessor_sentinels{verdict="dead"} 0`,
		`lessor_mass_expiry_brakes_total 1`, `lessor_commit_calls_count 3`,
		`lessor_store_errors_total{kind="full"} 1`, `lessor_store_errors_total{kind="other"} 1`,
		`lessor_http_requests_total{method="other",route="/a/{id}",status="404"} 1`,
		`lessor_http_requests_total{method="GET",route="none",status="404"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestCountersBeginAtZero: Prometheus sees no increase in a series that appears with its first event, so an alert on it
// would not fire.
func TestCountersBeginAtZero(t *testing.T) {
	got := scrape(t, New())
	want := []string{
		`lessor_ticks_total{outcome="missed"} 0`, `lessor_store_errors_total{kind="broken"} 0`,
		`lessor_store_errors_total{kind="other"} 0`,
	}
	for _, o := range []rules.Outcome{
		rules.OutcomeCompleted, rules.OutcomeFailed, rules.OutcomeExpired, rules.OutcomeReleased,
		rules.OutcomeCancelled,
	} {
		want = append(want, fmt.Sprintf("lessor_leases_ended_total{outcome=%q} 0", o))
	}
	for _, line := range append(want, `lessor_lease_denials_total{code="draining"} 0`) {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("the metrics of a new server lack %s", line)
		}
	}
}

// BenchmarkObserve measures the cost of the metrics for a commit with 100 grants and 100 ends.
func BenchmarkObserve(b *testing.B) {
	s := scheduler.Stats{
		Calls: 200, Took: time.Millisecond, Granted: 100, Waited: make([]time.Duration, 100),
		Ended: make([]scheduler.EndedAttempt, 100),
	}
	for i := range s.Ended {
		s.Waited[i], s.Ended[i] = time.Duration(i)*time.Millisecond, scheduler.EndedAttempt{
			Outcome: rules.OutcomeCompleted, Took: time.Duration(i) * time.Second,
		}
	}
	tel := New()
	for b.Loop() {
		tel.Observe(s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/grant+end")
}
