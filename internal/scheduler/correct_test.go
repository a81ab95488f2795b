package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"lessor"
)

// wrongBy is how far the clock is ahead for a while.
const wrongBy = 3 * time.Hour

// inWrongTime runs test in a world whose clock jumped ahead. goBack corrects it, while the scheduler runs and while it
// is stopped.
func inWrongTime(t *testing.T, test func(t *testing.T, w *world, goBack func())) {
	t.Helper()
	for _, stopped := range []bool{false, true} {
		name := "WhileItRuns"
		if stopped {
			name = "WhileItIsStopped"
		}
		t.Run(name, func(t *testing.T) {
			cfg := config()
			cfg.Circuit.Failures = 1
			inSteppingWorld(t, cfg, func(t *testing.T, w *world, clock *stepping) {
				clock.offset.Store(int64(wrongBy))
				time.Sleep(time.Second)
				test(t, w, func() {
					if stopped {
						w.halt()
					}
					clock.offset.Store(0)
					if stopped {
						w.start()
					}
					time.Sleep(time.Second)
				})
				w.noDrift()
				for _, s := range w.stats {
					if s.Err != nil {
						t.Errorf("a commit failed: %v", s.Err)
					}
				}
			})
		})
	}
}

func TestRetryWaitsNoLongerThanItsDelayAfterACorrectionOfTheClock(t *testing.T) {
	inWrongTime(t, func(t *testing.T, w *world, goBack func()) {
		released, failed := w.submit(nil), w.submit(func(s *lessor.Submission) {
			s.Backoff = &lessor.BackoffAsk{FirstMS: new(int64(20_000)), MaxMS: new(int64(60_000))}
		})
		given := w.submit(func(s *lessor.Submission) { s.RunAt = new(now().Add(wrongBy + time.Hour).String()) })
		r, f := w.lease("w1", nil), w.lease("w1", nil)
		if err := w.Release(w.ctx, anybody, r.Lease.ID, lessor.Release{
			WorkerID: &r.Lease.WorkerID, DelayMS: new(int64(30_000)),
		}); err != nil {
			t.Fatalf("release: %v", err)
		}
		w.mustComplete(f, "failed") // the retry comes after 10 s
		goBack()
		if j := w.wantState(failed.ID, lessor.Failed); j.RetryAt > now().Add(10*time.Second) {
			t.Errorf("retry_at is %s at %s, want 10 s later at most", j.RetryAt, now())
		}
		if _, d := w.ask("w1", nil); d == nil {
			t.Error("a job that waits was granted")
		}
		time.Sleep(10 * time.Second)
		if g := w.lease("w1", nil); g.Job.ID != failed.ID {
			t.Errorf("granted %v, want the retry", g.Job.ID)
		}
		time.Sleep(18 * time.Second)
		if _, d := w.ask("w1", nil); d == nil {
			t.Error("a release with a delay of 30 s was granted after 29 s")
		}
		time.Sleep(2 * time.Second)
		if g := w.lease("w1", nil); g.Job.ID != released.ID {
			t.Errorf("granted %v, want the job that was released with a delay", g.Job.ID)
		}
		if _, d := w.ask("w1", nil); d == nil {
			t.Error("a job was granted before the time that its submitter gave")
		}
		time.Sleep(wrongBy + time.Hour)
		w.wantState(given.ID, lessor.Queued)
	})
}

func TestTicksGoOnAfterACorrectionOfTheClock(t *testing.T) {
	inWrongTime(t, func(t *testing.T, w *world, goBack func()) {
		w.put(interval("every.minute", 60, nil))
		w.put(interval("by.cron", 1, func(e *lessor.Envelope) {
			e.Schedule = &lessor.ScheduleAsk{Type: new("cron"), Cron: new("* * * * *")}
		}))
		time.Sleep(10*time.Minute + time.Minute/2)
		goBack()
		corrected := now()
		ticks := func(id string, from, to lessor.Instant) (n int) {
			t.Helper()
			all, _, err := w.Ticks(w.ctx, anybody, id, lessor.TickFilter{From: from, To: to, Limit: 1000})
			if err != nil {
				t.Fatalf("ticks of %s: %v", id, err)
			}
			return len(all)
		}
		time.Sleep(2 * time.Minute)
		for _, id := range []string{"every.minute", "by.cron"} {
			if n := ticks(id, corrected, now()); n != 2 {
				t.Errorf("%s has %d ticks in the two minutes after the correction, want 2", id, n)
			}
			if n := ticks(id, corrected.Add(wrongBy-12*time.Minute), 0); n != 10 {
				t.Errorf("%s has %d ticks on the wrong clock, want 10", id, n)
			}
		}
		time.Sleep(wrongBy + time.Hour) // over the ticks that were decided on the wrong clock
		wrong := corrected.Add(wrongBy - 12*time.Minute)
		if n := ticks("by.cron", wrong, wrong.Add(time.Hour)); n != 60 {
			t.Errorf("by.cron has %d ticks in the hour that it met twice, want one row a minute", n)
		}
		if n := ticks("every.minute", wrong.Add(12*time.Minute), wrong.Add(42*time.Minute)); n != 30 {
			t.Errorf("every.minute has %d ticks in half an hour, want 30", n)
		}
	})
}

// TestManyDefinitionsTickAfterACorrectionOfTheClock has more definitions than one page.
func TestManyDefinitionsTickAfterACorrectionOfTheClock(t *testing.T) {
	inWrongTime(t, func(t *testing.T, w *world, goBack func()) {
		const many = 1001
		id := func(i int) string { return fmt.Sprintf("hourly.%d", i) }
		for i := range many {
			w.put(interval(id(i), 3600, nil))
		}
		goBack()
		time.Sleep(time.Minute)
		for i := range many {
			d, err := w.Definition(w.ctx, anybody, id(i))
			if err != nil || d.NextTickAt > now().Add(time.Hour) {
				t.Fatalf("%s: %v, next tick at %s, want it within an hour of %s", id(i), err, d.NextTickAt, now())
			}
		}
	})
}

func TestCircuitIsTriedAfterItsCooldownAfterACorrectionOfTheClock(t *testing.T) {
	inWrongTime(t, func(t *testing.T, w *world, goBack func()) {
		w.put(interval("flaky", 3600, nil))
		for range 2 {
			if _, err := w.Trigger(w.ctx, anybody, "flaky", nil); err != nil {
				t.Fatalf("trigger: %v", err)
			}
		}
		w.mustComplete(w.lease("w1", nil), "failed")
		goBack()
		if _, d := w.ask("w1", nil); d == nil {
			t.Fatal("a job under an open circuit was granted")
		}
		time.Sleep(5 * time.Minute)
		w.lease("w1", nil)
	})
}

func TestTemporarySettingsEndAfterACorrectionOfTheClock(t *testing.T) {
	inWrongTime(t, func(t *testing.T, w *world, goBack func()) {
		if _, err := w.SetCapacity(w.ctx, anybody, lessor.CapacityAsk{
			TotalUnits: lessor.SetTo(int64(50)), ExpiresInS: new(int64(60)),
		}); err != nil {
			t.Fatalf("set capacity: %v", err)
		}
		w.submit(func(s *lessor.Submission) { s.MaxRuntimeS = new(int64(90)) })
		g := w.lease("w1", nil)
		until := map[lessor.LeaseID]lessor.Instant{g.Lease.ID: now().Add(wrongBy + 5*time.Minute)}
		if err := w.Watch(w.ctx, until); err != nil {
			t.Fatalf("watch: %v", err)
		}
		goBack()
		if c, err := w.Capacity(w.ctx); err != nil || c.TotalUnits != 50 {
			t.Errorf("total is %d (%v) at the correction, want 50", c.TotalUnits, err)
		}
		time.Sleep(time.Minute)
		if c, err := w.Capacity(w.ctx); err != nil || c.TotalUnits != 100 {
			t.Errorf("total is %d (%v) a minute after the correction, want 100", c.TotalUnits, err)
		}
		time.Sleep(2 * time.Second)
		if n := w.live(); n != 0 {
			t.Errorf("%d leases live a ttl after the correction, want none: nobody beat", n)
		}
	})
}

// TestDatabaseClockComesBack sets the clock of a real server ahead for a while, under two nodes: what began to wait
// meanwhile waits no longer than its delay once the clock is right again.
func TestDatabaseClockComesBack(t *testing.T) {
	server := startWithFakeClock(t)
	url := server.URL("postgres")
	ws := []*world{node(t, url, config(), nil), node(t, url, config(), nil)}
	if err := server.Step(wrongBy); err != nil {
		t.Fatal(err)
	}
	ws[0].put(interval("every.2s", 2, nil))
	ticks := func(to lessor.Instant) int {
		all, _, err := ws[1].Ticks(ws[1].ctx, anybody, "every.2s", lessor.TickFilter{To: to, Limit: 1000})
		if err != nil {
			t.Fatalf("ticks: %v", err)
		}
		return len(all)
	}
	ws[0].eventually("a tick on the wrong clock", func() bool { return ticks(now().Add(2*wrongBy)) > 0 })
	job := ws[0].submit(func(s *lessor.Submission) {
		s.Type, s.Backoff = new("retried"), &lessor.BackoffAsk{FirstMS: new(int64(4000)), MaxMS: new(int64(4000))}
	})
	retried := func(r *lessor.LeaseRequest) { r.Types, r.WaitMS = []string{"retried"}, new(int64(20_000)) }
	ws[1].mustComplete(ws[1].lease("w1", retried), "failed") // the retry comes after 2 s
	if err := server.Step(0); err != nil {
		t.Fatal(err)
	}
	if g := ws[0].lease("w1", retried); g.Job.ID != job.ID || g.Job.Attempt != 2 {
		t.Errorf("granted attempt %d of %v, want the retry of %v", g.Job.Attempt, g.Job.ID, job.ID)
	}
	ws[0].eventually("a tick on the right clock", func() bool { return ticks(now().Add(wrongBy/2)) > 0 })
	for _, w := range ws {
		w.noDrift()
	}
}
