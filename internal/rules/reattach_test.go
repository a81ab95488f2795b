package rules

import (
	"encoding/json"
	"strings"
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
	if again := Reattach(h, after(2*time.Hour)); len(again) != 1 || h.FirstBeatAt != after(time.Hour) ||
		h.WatchUntil != after(2*time.Hour).Add(h.TTL) {
		t.Errorf("reattached again: %+v, %+v", again, h)
	}
	same(t, "entries of the record", h.Steps(), steps+3)
	h.Reattached = maxReattached
	if last := Reattach(h, after(3*time.Hour)); last != nil || h.Reattached != maxReattached {
		t.Errorf("the record grows without a bound: %+v", last)
	}
}

func TestResumeIsForWhatFailedForGood(t *testing.T) {
	spec := &Spec{
		ID: lessor.JobID{UUID: lessor.UUID{1}}, Payload: json.RawMessage(`{}`), IdempotencyKey: "k", RunAt: 5,
		Seq: 9, MaxAttempts: 3, TraceID: "trace",
	}
	next := lessor.JobID{UUID: lessor.UUID{2}}
	history := func(s Standing, reason string) *History {
		s.Spec, s.Turn = spec, Turn{Job: spec.ID, Fence: 7, Attempt: 2, MaxAttempts: 3}
		return &History{Standing: s, Attempts: []Attempt{{Turn: s.Turn, Reason: reason}}}
	}
	ended := func(s lessor.State) *History { return history(Standing{Place: Ended, Done: &Done{State: s}}, "failed") }
	for _, s := range []lessor.State{lessor.Failed, lessor.Expired} {
		got, c, err := Resume(ended(s), next, "admin", after(0))
		if err != nil || c.Next != nil {
			t.Fatalf("%s: %+v, %v", s, c, err)
		}
		same(t, "the new job", got, &Spec{
			ID: next, Payload: json.RawMessage(`{}`), MaxAttempts: 3, TraceID: "trace",
			CreatedAt: after(0), ResumedFrom: spec.ID, Actor: "admin",
		})
		same(t, "the record of the old job", c.Notes, []Note{{
			Job: spec.ID, Fence: 7, At: after(0), From: s, To: s, Actor: "admin", Attempt: 2,
			Reason: "resumed_as " + next.String(),
		}})
	}
	waiting := Standing{Place: Delayed, Wait: Wait{State: lessor.Failed}}
	_, c, err := Resume(history(waiting, ReasonHeartbeatStopped), next, "admin", after(0))
	if err != nil || c.Next == nil || c.Next.Done.State != lessor.Cancelled || len(c.Notes) != 2 ||
		c.Notes[1].From != lessor.Cancelled {
		t.Errorf("a dead command that waits for its retry: %+v, %v", c, err)
	}
	again := ended(lessor.Failed)
	again.Notes = []Note{{Fence: 7, Reason: resumedAs + next.String()}}
	later := ended(lessor.Failed)
	later.Notes = []Note{{Fence: 6, Reason: resumedAs + next.String()}}
	if err := CheckResume(later); err != nil {
		t.Errorf("a job that failed once more after its resume: %v", err)
	}
	stripped := ended(lessor.Failed)
	stripped.Standing.Spec = &Spec{}
	for want, h := range map[string]*History{
		"this one is completed":               ended(lessor.Completed),
		"this one is cancelled":               ended(lessor.Cancelled),
		"this one is queued":                  history(Standing{Place: InQueue}, "failed"),
		"this one is failed":                  history(waiting, "failed"),
		"payload is no longer kept":           stripped,
		"was resumed as job " + next.String(): again,
		"queued again: it is queued now, after attempt 2 of 3": history(Standing{Place: InQueue},
			ReasonHeartbeatStopped),
		"queued again: it is leased now": history(Standing{Place: Leased, Held: &Held{}}, ReasonHeartbeatStopped),
	} {
		_, _, err := Resume(h, next, "admin", after(0))
		if lessor.CodeOf(err) != lessor.CodeConflict || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want a conflict: %s", err, want)
		}
	}
}
