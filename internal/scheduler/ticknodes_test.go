package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// TestNodesTickTogetherOnce has three nodes on one database, of which one stops and starts again all the time: every
// tick of every definition has one row.
func TestNodesTickTogetherOnce(t *testing.T) {
	url := pool.Database(t)
	cfg := config()
	ws := []*world{node(t, url, cfg, nil), node(t, url, cfg, nil), node(t, url, cfg, nil)}
	const definitions = 40
	for i := range definitions {
		ws[i%3].put(interval(fmt.Sprintf("sync.%02d", i), 1, func(e *lessor.Envelope) {
			e.CatchUp, e.Overlap = new("all"), new("allow")
		}))
	}
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
		i := rand.IntN(3)
		ws[i].halt()
		ws[i] = node(t, url, cfg, nil)
	}
	mark, before, jobs := now(), countJobs(ws[0]), 0
	for i := range definitions {
		id := fmt.Sprintf("sync.%02d", i)
		d, err := ws[0].Definition(ws[0].ctx, anybody, id)
		if err != nil {
			t.Fatal(err)
		}
		var rows []lessor.Tick
		ws[0].eventually("up to date with the ticks of "+id, func() bool {
			rows, _, err = ws[0].Ticks(ws[0].ctx, anybody, id, lessor.TickFilter{Limit: 1000})
			return err == nil && len(rows) > 0 && rows[len(rows)-1].TickAt >= mark.Add(-time.Second)
		})
		next := d.CreatedAt.Add(time.Second)
		for _, r := range rows {
			if r.TickAt != next || r.RunID == nil {
				t.Fatalf("%s: the row %+v comes where that of %s should", id, r, next)
			}
			next = next.Add(time.Second)
			jobs++
		}
	}
	if after := countJobs(ws[0]); jobs < before || jobs > after {
		t.Errorf("%d ticks have rows, and there were %d jobs before and %d after", jobs, before, after)
	}
	for _, w := range ws {
		w.noDrift()
	}
}

// TestJobOfANodeThatDiedRaisesAnAlert has two nodes make jobs for which there is no worker, and one of them stops
// before their timeout. The other raises the alerts.
func TestJobOfANodeThatDiedRaisesAnAlert(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	const definitions = 8
	for i := range definitions {
		ws[0].put(interval(fmt.Sprintf("sync.%02d", i), 1, func(e *lessor.Envelope) {
			e.TimeoutSeconds = new(int64(3))
		}))
	}
	ws[1].eventually("every definition has a job", func() bool { return countJobs(ws[1]) == definitions })
	ws[0].halt()
	ws[1].eventually("every definition has an alert", func() bool {
		return len(strings.Split(ws[1].alerts(true), ", ")) == definitions
	})
}

// countJobs returns how many jobs there are, at most 1,000.
func countJobs(w *world) int {
	w.t.Helper()
	list, _, err := w.Jobs(w.ctx, anybody, lessor.JobFilter{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(list)
}

// TestNodesShareACircuit has attempts fail on both of two nodes at once: no failure is lost, the circuit opens once for
// both, and one job is tried.
func TestNodesShareACircuit(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	ws[0].put(interval("sync.crm", 3600, func(e *lessor.Envelope) {
		e.Circuit = &lessor.CircuitAsk{Failures: new(int64(20)), CooldownSeconds: new(int64(1))}
		e.LockKey, e.MaxAttempts = new("lock"), new(int64(50))
		e.Backoff = &lessor.DefinitionBackoffAsk{FirstMS: new(int64(1)), MaxMS: new(int64(1))}
	}))
	for i := range 4 {
		if _, err := ws[i%2].Trigger(ws[0].ctx, anybody, "sync.crm", nil); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	failed := 0
	for i, w := range ws {
		all.Go(func() {
			for {
				mu.Lock()
				done := failed >= 20
				mu.Unlock()
				if done {
					return
				}
				g, _ := w.ask(fmt.Sprintf("worker-%d", i), waiting(300))
				if g != nil && w.complete(*g, "failed") == nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for _, w := range ws {
		cs, _, err := w.Circuits(w.ctx, anybody, 10, "")
		if err != nil || len(cs) != 1 || cs[0].Failures < 20 {
			t.Errorf("circuits: %+v, %v; %d attempts failed", cs, err, failed)
		}
	}
	trials := 0
	for _, w := range ws {
		all.Go(func() {
			g, _ := w.ask("worker-t", waiting(3000))
			if g != nil {
				mu.Lock()
				trials++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if trials != 1 {
		t.Errorf("%d jobs were tried, want one for both nodes", trials)
	}
}

// TestRacingNodesKeepPauseAndCaps changes caps and pauses on both nodes while both grant: after each change has been
// acknowledged no grant breaks it.
func TestRacingNodesKeepPauseAndCaps(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	ws[0].flood(tenantA, 3000, nil)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i, w := range ws {
		all.Go(func() {
			worker := fmt.Sprintf("worker-%d", i)
			for {
				select {
				case <-stop:
					return
				default:
				}
				g, _ := w.ask(worker, nil)
				if g != nil {
					w.mustComplete(*g, "completed")
				}
			}
		})
	}
	for i := range 20 {
		w := ws[i%2]
		w.setTenant(tenantA, lessor.TenantAsk{Paused: lessor.SetTo(true)})
		paused := depthOf(t, w)
		time.Sleep(20 * time.Millisecond)
		if left := depthOf(t, w); left < paused-2 { // two may have been taken before the pause and ended after it
			t.Errorf("%d jobs left the queue of a paused tenant", paused-left)
		}
		w.setTenant(tenantA, lessor.TenantAsk{MaxConcurrency: lessor.SetTo(int64(1 + i%3))})
	}
	close(stop)
	all.Wait()
	for _, w := range ws {
		w.noDrift()
	}
}

func depthOf(t *testing.T, w *world) int {
	t.Helper()
	st, err := w.Status(w.ctx, scheduler.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	return st.QueueDepth.Normal
}

// TestRacingNodesShareByWeight lets two nodes grant at once: together they keep to the weights.
func TestRacingNodesShareByWeight(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	ws[0].setTenant(tenantA, lessor.TenantAsk{Weight: lessor.SetTo(int64(3))})
	ws[1].flood(tenantA, 1000, nil)
	ws[0].flood(tenantB, 1000, nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[lessor.TenantID]int{}
	for i, w := range ws {
		all.Go(func() {
			for range 200 {
				g := w.lease(fmt.Sprintf("worker-%d", i), waiting(5000))
				mu.Lock()
				got[g.Job.TenantID]++
				mu.Unlock()
				w.mustComplete(g, "completed")
			}
		})
	}
	all.Wait()
	if a := got[tenantA]; a < 270 || a > 330 {
		t.Errorf("the tenant with weight 3 got %d of 400 grants, want 300 ± 10 %%", a)
	}
}
