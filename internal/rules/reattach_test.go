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
	if again := Reattach(h, after(2*time.Hour)); again != nil || h.FirstBeatAt != after(time.Hour) || h.WatchUntil != after(2*time.Hour).Add(h.TTL) {
		t.Errorf("reattached again: %+v, %+v", again, h)
	}
}

func TestResumeIsForWhatFailedForGood(t *testing.T) {
	spec := &Spec{ID: lessor.JobID{UUID: lessor.UUID{1}}, Payload: json.RawMessage(`{}`), IdempotencyKey: "k", RunAt: 5, Seq: 9, MaxAttempts: 3, TraceID: "trace"}
	ended := func(s lessor.State) *Standing { return &Standing{Spec: spec, Place: Ended, Done: &Done{State: s}} }
	for _, s := range []lessor.State{lessor.Failed, lessor.Expired} {
		got, err := Resume(ended(s), false, after(0))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		same(t, "the new job", got, &Spec{Payload: json.RawMessage(`{}`), MaxAttempts: 3, TraceID: "trace", CreatedAt: after(0), ResumedFrom: spec.ID})
	}
	stripped := ended(lessor.Failed)
	stripped.Spec = &Spec{}
	waiting := &Standing{Spec: spec, Place: Delayed, Wait: Wait{State: lessor.Failed}}
	if _, err := Resume(waiting, true, after(0)); err != nil {
		t.Errorf("a dead command that waits for its retry: %v", err)
	}
	for _, s := range []*Standing{ended(lessor.Completed), ended(lessor.Cancelled), {Spec: spec, Place: InQueue}, waiting, stripped} {
		if _, err := Resume(s, false, after(0)); lessor.CodeOf(err) != lessor.CodeConflict {
			t.Errorf("%s is resumed: %v", s.State(), err)
		}
	}
}

func TestVerdictBoundaries(t *testing.T) {
	for age, want := range map[time.Duration]Verdict{
		0: Fresh, 119_999 * time.Millisecond: Fresh, 120 * time.Second: Stale, 600 * time.Second: Stale, 600_001 * time.Millisecond: Dead,
	} {
		if got := Judge(age, 120*time.Second, 600*time.Second); got != want {
			t.Errorf("%v is %s, want %s", age, got, want)
		}
	}
}

func TestAgeIsBoundedByWhatWasSeen(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		s    Sighting
		want time.Duration
	}{
		"by its own time":                      {Sighting{SinceBeat: time.Minute}, time.Minute},
		"a time in the future":                 {Sighting{SinceBeat: -day}, 0},
		"a time in the future, seen for long":  {Sighting{SinceBeat: -day, SinceSeen: time.Hour}, time.Hour},
		"our clock jumped ahead":               {Sighting{SinceBeat: day, SinceOther: new(time.Minute)}, time.Minute},
		"silent since before the clock jumped": {Sighting{SinceBeat: day, SinceSeen: time.Hour, SinceOther: new(time.Hour + time.Minute)}, time.Hour + time.Minute},
		"never seen with other content":        {Sighting{SinceBeat: day}, day},
	} {
		if got := c.s.Age(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestFilesSpeakForTheLeaseOfTheirFence(t *testing.T) {
	h := lease(func(h *Held) { h.Turn.Fence, h.WorkspaceID = 7, "here" })
	anywhere := lease(func(h *Held) { h.Turn.Fence = 7 })
	for name, c := range map[string]struct {
		h     *Held
		fence int64
		from  string
		want  bool
	}{
		"its own fence":                     {h, 7, "here", true},
		"no fence":                          {h, 0, "here", true},
		"an older fence":                    {h, 6, "here", false},
		"a newer fence":                     {h, 8, "here", false},
		"a copy in another workspace":       {h, 7, "there", false},
		"no fence, in another workspace":    {h, 0, "there", false},
		"a lease that names no workspace":   {anywhere, 7, "here", true},
		"a lease that is over, or none yet": {nil, 7, "here", false},
	} {
		if got := Speaks(c.h, c.fence, c.from); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestUnbeatenLeavesOutOurOwnDowntime(t *testing.T) {
	beaten := func(at time.Duration) *Held { return lease(func(h *Held) { h.BeatAt = after(at) }) }
	for name, c := range map[string]struct {
		h     *Held
		since time.Duration
		want  time.Duration
	}{
		"since the beat":              {beaten(-time.Minute), -time.Hour, time.Minute},
		"since we serve again":        {beaten(-time.Hour), -time.Minute, time.Minute},
		"beaten on a clock far ahead": {beaten(24 * time.Hour), -time.Minute, time.Minute},
		"beaten on a clock a bit off": {beaten(500 * time.Millisecond), -time.Minute, -500 * time.Millisecond},
	} {
		if got := Unbeaten(c.h, after(0), Serving{Since: after(c.since), LastBeat: after(0)}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
