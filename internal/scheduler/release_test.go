package scheduler_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"lessor"
)

// onEveryStore runs a test over SQLite, and over two nodes on PostgreSQL that take turns.
func onEveryStore(t *testing.T, test func(t *testing.T, turn func() *world)) {
	t.Run("sqlite", func(t *testing.T) {
		inWorld(t, config(), func(t *testing.T, w *world) { test(t, func() *world { return w }) })
	})
	t.Run("two nodes", func(t *testing.T) {
		ws, n := nodes(t, 2, config(), nil), 0
		test(t, func() *world { n++; return ws[n%2] })
	})
}

// leaseSoon takes a job that may be due only in a moment, or be queued by another node.
func (w *world) leaseSoon(worker string) lessor.Grant {
	w.t.Helper()
	return w.lease(worker, func(r *lessor.LeaseRequest) { r.WaitMS = new(int64(10_000)) })
}

func (w *world) release(g lessor.Grant, r lessor.Release) {
	w.t.Helper()
	r.WorkerID = &g.Lease.WorkerID
	if err := w.Release(w.ctx, anybody, g.Lease.ID, r); err != nil {
		w.t.Fatalf("release: %v", err)
	}
}

// TestJobThatMovesSurvivesEveryRelease: releases count only since the last sign of progress.
func TestJobThatMovesSurvivesEveryRelease(t *testing.T) {
	const most = 500
	for name, step := range map[string]func(w *world, g lessor.Grant, n int) lessor.Release{
		"by progress": func(w *world, g lessor.Grant, n int) lessor.Release {
			for _, p := range []float64{float64(n+1) / most, 0} { // a later fall does not cancel the rise
				if _, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, lessor.Heartbeat{
					WorkerID: &g.Lease.WorkerID, Progress: &p,
				}); err != nil {
					w.t.Fatal(err)
				}
			}
			return lessor.Release{}
		},
		"by a checkpoint": func(w *world, g lessor.Grant, n int) lessor.Release {
			c := json.RawMessage(fmt.Sprintf(`{"page":%d}`, n))
			if _, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, lessor.Heartbeat{
				WorkerID: &g.Lease.WorkerID, Checkpoint: c,
			}); err != nil {
				w.t.Fatal(err)
			}
			return lessor.Release{}
		},
		"by the checkpoint of its release": func(_ *world, _ lessor.Grant, n int) lessor.Release {
			return lessor.Release{Checkpoint: json.RawMessage(fmt.Sprintf(`{"page":%d}`, n))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, turn func() *world) {
				releases := most
				if name != "by progress" {
					releases = 50 // twice as many as a job survives that does not move
				}
				job := turn().submit(nil)
				for n := range releases {
					w := turn()
					g := w.leaseSoon("worker-1")
					if g.Job.Attempt != 1 || g.Job.Interruptions != min(n, 1) {
						t.Fatalf("attempt %d after %d interruptions at release %d, want 1 after %d", g.Job.Attempt,
							g.Job.Interruptions, n, min(n, 1))
					}
					w.release(g, step(w, g, n))
				}
				turn().wantState(job.ID, lessor.Queued)
			})
		})
	}
}

// TestJobThatDoesNotMoveFailsAtTheTwentyFirstRelease: to report the same progress again does not count as progress.
func TestJobThatDoesNotMoveFailsAtTheTwentyFirstRelease(t *testing.T) {
	onEveryStore(t, func(t *testing.T, turn func() *world) {
		job := turn().submit(nil)
		move := func(p float64) lessor.Grant {
			w := turn()
			g := w.leaseSoon("worker-1")
			if _, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, lessor.Heartbeat{
				WorkerID: &g.Lease.WorkerID, Progress: &p,
			}); err != nil {
				t.Fatal(err)
			}
			return g
		}
		same := lessor.Release{Checkpoint: json.RawMessage(`{"page":1}`)}
		turn().release(move(0.5), same) // the only progress
		for n := 2; n <= 20; n++ {
			turn().release(move(float64(n%5)/10), same)
			if j := turn().wantState(job.ID, lessor.Queued); j.Interruptions != n {
				t.Fatalf("%d interruptions after release %d", j.Interruptions, n)
			}
		}
		turn().release(move(0.5), same)
		if j := turn().wantState(job.ID, lessor.Failed); j.Error == nil || *j.Error != "too_many_interruptions" ||
			j.Interruptions != 21 {
			t.Errorf("error %v after %d interruptions, want too_many_interruptions after 21", j.Error, j.Interruptions)
		}
	})
}

// TestReleaseThatDoesNotCountCostsTheJobNothing: the worker could not start it, or never delivered it.
func TestReleaseThatDoesNotCountCostsTheJobNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, turn func() *world) {
		job := turn().submit(nil)
		w := turn()
		w.release(w.leaseSoon("worker-1"), lessor.Release{})
		for range 30 {
			w := turn()
			g := w.leaseSoon("worker-1")
			if g.Job.Attempt != 1 || g.Job.Interruptions != 1 {
				t.Fatalf("attempt %d after %d interruptions, want 1 after 1", g.Job.Attempt, g.Job.Interruptions)
			}
			w.release(g, lessor.Release{Reason: new(lessor.ReleaseUndelivered)})
		}
		w = turn()
		g := w.leaseSoon("worker-1")
		w.release(g, lessor.Release{Reason: new(lessor.ReleaseCannotStart)})
		if j := turn().wantState(job.ID, lessor.Queued); j.Attempt != 0 || j.Interruptions != 1 {
			t.Errorf("attempt %d after %d interruptions, want 0 after 1", j.Attempt, j.Interruptions)
		}
		if _, denial := turn().ask("worker-2", nil); denial == nil {
			t.Error("a job that could not be started was granted again at once")
		}
		events, _, err := w.Events(w.ctx, anybody, job.ID, 1000, "")
		if err != nil || events[len(events)-1].Reason != lessor.ReleaseCannotStart {
			t.Errorf("the record ends with %+v, error %v; want the reason of the release", events[len(events)-1], err)
		}
	})
}

// TestHeldFolderRaisesHungOnce: the alert names the job and is not repeated while it is open.
func TestHeldFolderRaisesHungOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, turn func() *world) {
		job := turn().submit(nil)
		for range 2 {
			w := turn()
			w.release(w.leaseSoon("worker-1"), lessor.Release{Reason: new(lessor.ReleaseFolderHeld)})
		}
		w := turn()
		open, _, err := w.Alerts(w.ctx, anybody, lessor.AlertFilter{Open: true, Limit: 10})
		if err != nil || len(open) != 1 || open[0].Kind != lessor.AlertHung || open[0].Subject != job.ID.String() {
			t.Errorf("open alerts %+v, error %v; want one hung about %s", open, err, job.ID)
		}
		if j := w.wantState(job.ID, lessor.Queued); j.Attempt != 0 || j.Interruptions != 0 {
			t.Errorf("attempt %d after %d interruptions, want 0 after 0", j.Attempt, j.Interruptions)
		}
	})
}
