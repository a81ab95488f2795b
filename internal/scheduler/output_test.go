package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// printing is a scheduler that keeps a little output: 10 bytes of the beginning, 20 of the end.
func printing() scheduler.Config {
	cfg := config()
	cfg.Output = rules.OutputKeep{Head: 10, Tail: 20}
	return cfg
}

func (w *world) print(g lessor.Grant, offset int64, text string) error {
	_, err := w.Print(w.ctx, anybody, g.Lease.ID, lessor.OutputReport{
		WorkerID: &g.Lease.WorkerID,
		Chunks:   []lessor.OutputChunk{{Stream: new(lessor.Stdout), Offset: &offset, Data: []byte(text)}},
	})
	return err
}

func (w *world) mustPrint(g lessor.Grant, offset int64, text string) {
	w.t.Helper()
	if err := w.print(g, offset, text); err != nil {
		w.t.Fatalf("print: %v", err)
	}
}

// readOutput asks for output, and waits for it at most 10 s.
func (w *world) readOutput(id lessor.JobID, q lessor.OutputQuery) lessor.Output {
	w.t.Helper()
	out, err := w.Output(w.ctx, anybody, id, q, new(int64(10_000)))
	if err != nil {
		w.t.Fatalf("read output: %v", err)
	}
	return out
}

func (w *world) wantOutput(id lessor.JobID, q lessor.OutputQuery, offset int64, text string, ended bool) {
	w.t.Helper()
	out := w.readOutput(id, q)
	if out.Offset != offset || string(out.Data) != text || out.Ended != ended ||
		out.NextOffset != offset+int64(len(text)) {
		w.t.Errorf("output from %d: %q from %d up to %d, ended %v; want %q from %d, ended %v",
			q.Offset, out.Data, out.Offset, out.NextOffset, out.Ended, text, offset, ended)
	}
}

func TestOutputOfAttemptsNeverMixes(t *testing.T) {
	inWorld(t, printing(), func(t *testing.T, w *world) {
		w.submit(nil)
		first := w.lease("worker-1", nil)
		id := first.Job.ID
		w.mustPrint(first, 0, "first")
		w.wantOutput(id, lessor.OutputQuery{}, 0, "first", false)
		w.giveBack(first)
		w.wantOutput(id, lessor.OutputQuery{}, 0, "first", true)
		second := w.lease("worker-1", nil) // with the number of the one before
		w.mustPrint(second, 0, "again")
		w.wantOutput(id, lessor.OutputQuery{Attempt: 1}, 0, "again", false)
		w.wantOutput(id, lessor.OutputQuery{Fence: first.Lease.Fence}, 0, "first", true)
		w.wantOutput(id, lessor.OutputQuery{Fence: second.Lease.Fence, Attempt: 1}, 0, "again", false)
		w.mustComplete(second, "failed")
		time.Sleep(time.Second)
		third := w.lease("worker-1", nil)
		w.mustPrint(third, 0, "third")
		w.wantOutput(id, lessor.OutputQuery{}, 0, "third", false)
		w.wantOutput(id, lessor.OutputQuery{Attempt: 1}, 0, "again", true)
		w.wantOutput(id, lessor.OutputQuery{Attempt: 2, Offset: 3}, 3, "rd", false)
		w.wantOutput(id, lessor.OutputQuery{Offset: -2}, 3, "rd", false)
		w.mustComplete(third, "completed")
		w.wantOutput(id, lessor.OutputQuery{Offset: 5}, 5, "", true)
		w.wantOutput(id, lessor.OutputQuery{Attempt: 3}, 0, "", true)
		w.restart(time.Second)
		w.wantOutput(id, lessor.OutputQuery{}, 0, "third", true)
		w.wantOutput(id, lessor.OutputQuery{Attempt: 1}, 0, "again", true)
		w.wantOutput(id, lessor.OutputQuery{Fence: first.Lease.Fence, Offset: 3}, 3, "st", true)
		want := []lessor.OutputLease{
			{Attempt: 1, Fence: first.Lease.Fence},
			{Attempt: 1, Fence: second.Lease.Fence},
			{Attempt: 2, Fence: third.Lease.Fence},
		}
		if got := w.readOutput(id, lessor.OutputQuery{Fence: first.Lease.Fence}).Leases; !slices.Equal(got, want) {
			t.Errorf("output of %+v, want of %+v", got, want)
		}
		_, err := w.Output(w.ctx, anybody, id, lessor.OutputQuery{Fence: 1}, nil)
		w.wantCode(err, lessor.CodeLeaseNotFound)
		_, err = w.Output(w.ctx, anybody, id, lessor.OutputQuery{Fence: -1}, nil)
		w.wantCode(err, lessor.CodeInvalidValue)
	})
}

func (w *world) giveBack(g lessor.Grant) {
	w.t.Helper()
	if err := w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{WorkerID: &g.Lease.WorkerID}); err != nil {
		w.t.Fatal(err)
	}
}

// TestOutputOfManyLeasesIsBounded releases an attempt more often than output is kept for. Half of the leases print
// from the middle on, as a worker does whose server was away for long.
func TestOutputOfManyLeasesIsBounded(t *testing.T) {
	cfg := printing()
	cfg.MaxInterruptions = 1000
	inWorld(t, cfg, func(t *testing.T, w *world) {
		id := w.submit(nil).ID
		var fences []int64
		for n := range rules.MaxOutputLeases + 20 {
			g := w.lease("worker-1", nil)
			fences = append(fences, g.Lease.Fence)
			w.mustPrint(g, int64(n%2), "hello")
			w.giveBack(g)
		}
		var got []int64
		for _, l := range w.readOutput(id, lessor.OutputQuery{}).Leases {
			got = append(got, l.Fence)
		}
		if want := fences[20:]; !slices.Equal(got, want) {
			t.Errorf("output is kept of %d leases, want of the last %d", len(got), len(want))
		}
		for n, fence := range fences[:20] {
			w.wantOutput(id, lessor.OutputQuery{Fence: fence}, 0, "", true)
			if t.Failed() {
				t.Fatalf("lease %d of %d has output", n, len(fences))
			}
		}
		w.wantOutput(id, lessor.OutputQuery{Fence: fences[20]}, 0, "hello", true)
	})
}

func TestOutputIsReadWhenItArrives(t *testing.T) {
	inWorld(t, printing(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		start := time.Now()
		time.AfterFunc(2*time.Second, func() {
			g := w.lease("worker-1", nil)
			time.AfterFunc(time.Second, func() { w.mustPrint(g, 0, "hello") })
			time.AfterFunc(2*time.Second, func() {
				beat := lessor.Heartbeat{WorkerID: &g.Lease.WorkerID, Output: []lessor.OutputChunk{
					{Stream: new(lessor.Stdout), Offset: new(int64(5)), Data: []byte(" world")},
				}}
				if _, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, beat); err != nil {
					t.Error(err)
				}
			})
			time.AfterFunc(3*time.Second, func() { w.mustComplete(g, "completed") })
		})
		at := func(want time.Duration) {
			t.Helper()
			if took := time.Since(start); took < want || took > want+10*time.Millisecond {
				t.Errorf("answered after %v, want %v", took, want)
			}
		}
		w.wantOutput(job.ID, lessor.OutputQuery{}, 0, "hello", false)
		at(3 * time.Second)
		w.wantOutput(job.ID, lessor.OutputQuery{Offset: 5}, 5, " world", false)
		at(4 * time.Second)
		w.wantOutput(job.ID, lessor.OutputQuery{Offset: 11}, 11, "", true)
		at(5 * time.Second)
	})
}

// TestReaderOfOutputSeesTheEndOfEachAttempt: a reader that waits is answered when the lease is over, also if the job
// goes on.
func TestReaderOfOutputSeesTheEndOfEachAttempt(t *testing.T) {
	inWorld(t, printing(), func(t *testing.T, w *world) {
		for name, end := range map[string]func(lessor.Grant) error{
			"fails": func(g lessor.Grant) error { return w.complete(g, "failed") },
			"is released": func(g lessor.Grant) error {
				r := lessor.Release{WorkerID: &g.Lease.WorkerID, DelayMS: new(int64(60_000))}
				return w.Release(w.ctx, anybody, g.Lease.ID, r)
			},
		} {
			job := w.submit(func(s *lessor.Submission) {
				s.Backoff = &lessor.BackoffAsk{FirstMS: new(int64(60_000)), MaxMS: new(int64(60_000))}
			})
			g := w.lease("worker-1", nil)
			w.mustPrint(g, 0, "hello")
			start := time.Now()
			time.AfterFunc(time.Second, func() {
				if err := end(g); err != nil {
					t.Error(err)
				}
			})
			w.wantOutput(job.ID, lessor.OutputQuery{Offset: 5}, 5, "", true)
			if took := time.Since(start); took > time.Second+10*time.Millisecond {
				t.Errorf("an attempt that %s: answered after %v, want 1 s", name, took)
			}
		}
	})
}

func TestOutputKeepsItsBeginningAndItsEnd(t *testing.T) {
	inWorld(t, printing(), func(_ *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		text := strings.Repeat("0123456789", 10)
		for at := 0; at < 100; at += 5 {
			w.mustPrint(g, int64(at), text[at:at+5])
		}
		w.mustPrint(g, 20, text[20:25]) // a repeated call that arrives late
		w.wantOutput(g.Job.ID, lessor.OutputQuery{}, 0, text[:10], false)
		w.wantOutput(g.Job.ID, lessor.OutputQuery{Offset: 10}, 80, text[80:], false)
	})
}

func TestOutputNeedsALiveLease(t *testing.T) {
	inWorld(t, printing(), func(t *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		w.mustPrint(g, 0, "before")
		if h := w.job(g.Job.ID); h.State != lessor.Leased {
			t.Errorf("output made the job %s: it is no heartbeat", h.State)
		}
		stranger := g
		stranger.Lease.WorkerID = "worker-2"
		w.wantCode(w.print(stranger, 6, "stolen"), lessor.CodeWorkerMismatch)
		time.Sleep(50 * time.Second)
		w.mustPrint(g, 6, " it lapsed")
		time.Sleep(11 * time.Second) // output does not extend a lease
		refusal := w.wantCode(w.print(g, 16, "late"), lessor.CodeLeaseNotFound)
		if refusal.EndedReason != "expired" {
			t.Errorf("ended as %q, want expired", refusal.EndedReason)
		}
		w.wantOutput(g.Job.ID, lessor.OutputQuery{}, 0, "before it lapsed", true)
		_, err := w.Output(w.ctx, workerOf(tenantOf(1), 1), g.Job.ID, lessor.OutputQuery{}, nil)
		w.wantCode(err, lessor.CodeJobNotFound)
		_, err = w.Output(w.ctx, anybody, g.Job.ID, lessor.OutputQuery{Stream: "log"}, nil)
		w.wantCode(err, lessor.CodeInvalidValue)
		_, err = w.Output(w.ctx, anybody, g.Job.ID, lessor.OutputQuery{Attempt: -1}, nil)
		w.wantCode(err, lessor.CodeInvalidValue)
	})
}

func TestOutputIsOff(t *testing.T) {
	inWorld(t, config(), func(_ *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		w.mustPrint(g, 0, "nothing is kept")
		w.mustComplete(g, "completed")
		w.wantOutput(g.Job.ID, lessor.OutputQuery{}, 0, "", true)
	})
}

// TestOutputIsSeenOnAnotherNode also repeats a call on both nodes.
func TestOutputIsSeenOnAnotherNode(t *testing.T) {
	ws := nodes(t, 2, printing(), nil)
	a, b := ws[0], ws[1]
	job := a.submit(nil)
	g := a.lease("worker-1", nil)
	a.mustPrint(g, 0, "one ")
	b.wantOutput(job.ID, lessor.OutputQuery{}, 0, "one ", false)
	seen := make(chan time.Time, 1)
	go func() {
		b.wantOutput(job.ID, lessor.OutputQuery{Offset: 4}, 4, "two", false)
		seen <- time.Now()
	}()
	time.Sleep(200 * time.Millisecond) // time for the call to wait; one that comes later only returns sooner
	start := time.Now()
	a.mustPrint(g, 4, "two")
	if took := (<-seen).Sub(start); took > 2*time.Second {
		t.Errorf("seen after %v, want within 2 s", took)
	}
	b.mustPrint(g, 4, "two three")
	a.mustPrint(g, 4, "two")
	a.wantOutput(job.ID, lessor.OutputQuery{}, 0, "one two three"[:13], false)
	a.giveBack(g)
	b.wantCode(b.print(g, 13, "late"), lessor.CodeLeaseNotFound)
	again := b.lease("worker-2", func(r *lessor.LeaseRequest) { r.WaitMS = new(int64(30_000)) })
	b.mustPrint(again, 0, "again")
	a.wantOutput(job.ID, lessor.OutputQuery{}, 0, "again", false)
	b.wantOutput(job.ID, lessor.OutputQuery{Fence: g.Lease.Fence}, 0, "one two three", true)
}
