package rules

import (
	"encoding/json"
	"testing"
	"time"

	"lessor"
)

func TestReattachHoldsTheLeaseForOneMoreTTL(t *testing.T) {
	h := lease(func(h *Held) { h.FirstBeatAt = 0 })
	steps := h.Steps()
	notes := Reattach(h, after(time.Hour))
	if len(notes) != 1 || notes[0].Reason != "reattached" || notes[0].Fence != h.Turn.Fence || !notes[0].Held {
		t.Errorf("notes: %+v", notes)
	}
	same(t, "held until", h.WatchUntil, after(time.Hour).Add(h.TTL))
	same(t, "state", h.State(), lessor.Running)
	same(t, "entries of the record", h.Steps(), steps+2) // it runs, and it was reattached
	if again := Reattach(h, after(2*time.Hour)); again != nil || h.FirstBeatAt != after(time.Hour) ||
		h.WatchUntil != after(2*time.Hour).Add(h.TTL) {
		t.Errorf("reattached again: %+v, %+v", again, h)
	}
}

func TestResumeIsForWhatFailedForGood(t *testing.T) {
	spec := &Spec{
		ID: lessor.JobID{UUID: lessor.UUID{1}}, Payload: json.RawMessage(`{}`), IdempotencyKey: "k", RunAt: 5,
		Seq: 9, MaxAttempts: 3, TraceID: "trace",
	}
	ended := func(s lessor.State) *Standing { return &Standing{Spec: spec, Place: Ended, Done: &Done{State: s}} }
	for _, s := range []lessor.State{lessor.Failed, lessor.Expired} {
		got, err := Resume(ended(s), false, after(0))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		same(t, "the new job", got, &Spec{
			Payload: json.RawMessage(`{}`), MaxAttempts: 3, TraceID: "trace",
			CreatedAt: after(0), ResumedFrom: spec.ID,
		})
	}
	stripped := ended(lessor.Failed)
	stripped.Spec = &Spec{}
	waiting := &Standing{Spec: spec, Place: Delayed, Wait: Wait{State: lessor.Failed}}
	if _, err := Resume(waiting, true, after(0)); err != nil {
		t.Errorf("a dead command that waits for its retry: %v", err)
	}
	for _, s := range []*Standing{
		ended(lessor.Completed), ended(lessor.Cancelled),
		{Spec: spec, Place: InQueue},
		waiting, stripped,
	} {
		if _, err := Resume(s, false, after(0)); lessor.CodeOf(err) != lessor.CodeConflict {
			t.Errorf("%s is resumed: %v", s.State(), err)
		}
	}
}
