package scheduler_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/pgtest"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// stepping is a store whose clock is set at the next call of Serve: after the tables were read, and before the first
// note of service.
type stepping struct {
	scheduler.Store
	offset atomic.Int64
	next   atomic.Int64 // at the next Serve; 0 = none
}

func (s *stepping) now() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) }

func (s *stepping) Serve(ctx context.Context, anew bool) (rules.Serving, error) {
	if d := s.next.Swap(0); d != 0 {
		s.offset.Add(d)
	}
	return s.Store.Serve(ctx, anew)
}

func inSteppingWorld(t *testing.T, cfg scheduler.Config, test func(t *testing.T, w *world, s *stepping)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stepping{}
		w := &world{t: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "lessor.db"), cfg: cfg, clock: s.now}
		w.wrap = func(store scheduler.Store) scheduler.Store { s.Store = store; return s }
		w.start()
		defer func() { w.halt() }()
		test(t, w, s)
	})
}

// TestSilentLeaseEndsOnceAfterAStepOfTheClock: it ends a ttl after the step, whatever the clock says, both by the sweep
// and for a heartbeat.
func TestSilentLeaseEndsOnceAfterAStepOfTheClock(t *testing.T) {
	const ttl = time.Minute
	for _, step := range []time.Duration{
		-time.Hour, -90 * time.Second, -30 * time.Second, -5 * time.Second,
		30 * time.Second, time.Hour,
	} {
		t.Run(step.String(), func(t *testing.T) {
			inSteppingWorld(t, config(), func(t *testing.T, w *world, s *stepping) {
				silent, alive := w.submit(nil), w.submit(nil)
				first, second := w.lease("worker-1", nil), w.lease("worker-2", nil)
				w.mustBeat(first)
				w.mustBeat(second)
				time.Sleep(time.Second)
				s.offset.Add(int64(step))
				start := time.Now()
				for time.Since(start) < ttl-time.Second {
					w.wantState(silent.ID, lessor.Running)
					time.Sleep(ttl / 6)
					w.mustBeat(second)
				}
				time.Sleep(time.Until(start.Add(ttl + 2*time.Second)))
				w.wantOver(silent.ID)
				_, err := w.beat(first)
				w.wantCode(err, lessor.CodeLeaseNotFound)
				w.wantState(alive.ID, lessor.Running)
				w.noDrift()
			})
		})
	}
}

// TestChecksAreInTimeAfterTheClockStepsBackDuringTheStart sets the clock back after the node read the tables: the
// checks that it planned before still come in time.
func TestChecksAreInTimeAfterTheClockStepsBackDuringTheStart(t *testing.T) {
	cfg := config()
	cfg.TTL = 5 * time.Second
	inSteppingWorld(t, cfg, func(t *testing.T, w *world, s *stepping) {
		job := w.submit(nil)
		w.mustBeat(w.lease("worker-1", nil))
		w.halt()
		s.next.Store(int64(-30 * time.Second))
		w.start()
		time.Sleep(cfg.TTL + 2*time.Second)
		w.wantOver(job.ID)
	})
}

// wantOver fails if a job has a lease.
func (w *world) wantOver(id lessor.JobID) {
	w.t.Helper()
	if j := w.job(id); j.LeaseID != nil {
		w.t.Fatalf("job is still %s, want no lease any more", j.State)
	}
}

// TestRequestWaitsNoLongerThanAskedWhenTheClockStepsBack: a long poll is answered before its client gives up.
func TestRequestWaitsNoLongerThanAskedWhenTheClockStepsBack(t *testing.T) {
	inSteppingWorld(t, config(), func(t *testing.T, w *world, s *stepping) {
		time.AfterFunc(5*time.Second, func() { s.offset.Add(int64(-time.Hour)) })
		start := time.Now()
		if _, denial := w.ask("worker-1", waiting(20_000)); denial == nil {
			t.Fatal("there is no job, and a lease was granted")
		}
		if took := time.Since(start); took > 26*time.Second {
			t.Errorf("a request that may wait 20 s was answered after %v", took)
		}
	})
}

// startWithFakeClock starts a database server whose clock the test sets.
func startWithFakeClock(t *testing.T) *pgtest.Server {
	t.Helper()
	server, err := pgtest.Start(t.Context(), pgtest.Options{FakeClock: pgtest.FakeClock(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// TestDatabaseClockSteps sets the clock of a real server under two nodes: a silent lease ends a ttl later, and one
// with heartbeats lives.
func TestDatabaseClockSteps(t *testing.T) {
	server := startWithFakeClock(t)
	cfg := config()
	cfg.TTL, cfg.Sweep = 4*time.Second, 100*time.Millisecond
	url := server.URL("postgres")
	ws := []*world{node(t, url, cfg, nil), node(t, url, cfg, nil)}
	for i, step := range []time.Duration{30 * time.Second, 27 * time.Second} { // ahead by 30 s, back by 3 s
		var silent []lessor.Grant
		for k, w := range ws {
			w.submit(nil)
			g := w.lease(fmt.Sprintf("silent-%d-%d", i, k), waiting(5000))
			w.mustBeat(g)
			silent = append(silent, g)
		}
		ws[0].submit(nil)
		alive := ws[1].lease(fmt.Sprintf("alive-%d", i), waiting(5000))
		if err := server.Step(step); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ends, stalled := map[lessor.LeaseID]time.Duration{}, time.Duration(0)
		for len(ends) < len(silent) && time.Since(start) < 3*cfg.TTL {
			asked := time.Now()
			ws[i%2].mustBeat(alive)
			stalled += max(0, time.Since(asked)-200*time.Millisecond) // gaps in service are free
			for k, g := range silent {
				if ends[g.Lease.ID] == 0 && ws[k].job(g.Job.ID).LeaseID == nil {
					ends[g.Lease.ID] = time.Since(start)
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		for _, g := range silent {
			// half a second for a busy machine
			if end := ends[g.Lease.ID]; end < cfg.TTL-time.Second || end-stalled > cfg.TTL+2500*time.Millisecond {
				t.Errorf("after a step to %v a silent lease of %v ended after %v (0 = never), %v of it stalls: "+
					"want within 2 s of its ttl", step, cfg.TTL, end, stalled)
			}
		}
		ws[0].mustComplete(alive, "completed")
		for _, g := range silent { // on either node
			_, err := ws[0].beat(g)
			ws[0].wantCode(err, lessor.CodeLeaseNotFound)
			if _, err := ws[0].Cancel(ws[0].ctx, anybody, g.Job.ID, true); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTemporaryCapacityFollowsTheClock sets a temporary capacity, moves the clock past its end, and moves it back: the
// capacity in force depends only on the store and its clock, so all nodes agree.
func TestTemporaryCapacityFollowsTheClock(t *testing.T) {
	inSteppingWorld(t, config(), func(t *testing.T, w *world, s *stepping) {
		ask := lessor.CapacityAsk{TotalUnits: lessor.SetTo(int64(7)), ExpiresInS: new(int64(60))}
		if _, err := w.SetCapacity(w.ctx, anybody, ask); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			step time.Duration
			want int
		}{{time.Second, 7}, {100 * time.Second, 100}, {-95 * time.Second, 7}} {
			s.offset.Add(int64(c.step))
			time.Sleep(5 * time.Second)
			if got, err := w.Capacity(w.ctx); err != nil || got.TotalUnits != c.want {
				t.Fatalf("after a step of %v: %d units (%v), want %d", c.step, got.TotalUnits, err, c.want)
			}
		}
	})
}
