package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
)

// doubt is a memory.Stepper that loses the answer to the next commit for good.
type doubt struct {
	point string // the last one that was reached
	next  bool
}

func (d *doubt) Reach(_, point string) { d.point = point }

func (*doubt) Wait(string, string) {}

func (d *doubt) Fate(string) memory.Fate {
	if !d.next || d.point == "serve" {
		return memory.Durable
	}
	d.next = false
	return memory.DurableUnknown
}

// TestWaitingRequestIsAnsweredAfterAnUnknownCommit: a request that waits gets a job in a commit whose answer is
// lost. Its caller gets "unknown" at once, as the caller of the submission does, and the repeated request gets the
// lease. The request must not go on waiting for a job that its worker already holds.
func TestWaitingRequestIsAnsweredAfterAnUnknownCommit(t *testing.T) {
	s := &stepper{t: t, ctx: t.Context(), clock: time.UnixMilli(1_700_000_000_000)}
	lost := &doubt{}
	db := memory.New(memory.Options{Clock: func() lessor.Instant { return lessor.At(s.clock) }, Stepper: lost})
	n := scheduler.NewStepped(db.Open("node"), config(), func() time.Time { return s.clock })
	s.step(n)
	ask := lessor.LeaseRequest{WorkerID: new("worker"), RequestID: new("r1"), WaitMS: new(int64(30_000))}
	var asked error
	waiting, err := n.Begin(s.ctx, func() { _, _, asked = n.Request(s.ctx, anybody, ask) })
	if err != nil {
		t.Fatal(err)
	}
	lost.next = true
	var submitted error
	fault := n.Answer(s.ctx, func() {
		_, submitted = n.Submit(s.ctx, anybody, lessor.Submission{Type: new("generic")})
	})
	if e, ok := errors.AsType[*lessor.Error](submitted); !ok || !e.OutcomeUnknown {
		t.Fatalf("the submission is answered %v, the step %v; want an unknown outcome", submitted, fault)
	}
	select {
	case <-waiting:
	case <-time.After(10 * time.Second):
		t.Fatal("the request still waits, and its worker has a lease")
	}
	if e, ok := errors.AsType[*lessor.Error](asked); !ok || !e.OutcomeUnknown {
		t.Errorf("the request is answered %v, want an unknown outcome", asked)
	}
	s.answer(n, "repeat", func() error {
		grants, denial, err := n.Request(s.ctx, anybody, ask)
		if len(grants) != 1 {
			t.Errorf("the repeated request gets %d grants, denial %+v", len(grants), denial)
		}
		return err
	})
}
