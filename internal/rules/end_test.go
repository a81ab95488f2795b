package rules

import (
	"fmt"
	"testing"
	"time"

	"lessor"
)

var usual = Retries{BackoffFirst: time.Second, BackoffMax: 5 * time.Minute, MaxInterruptions: 20}

// ends are the ways in which an attempt can be asked to end.
var ends = map[string]End{
	"completed": {
		Outcome: OutcomeCompleted, Said: SaidCompleted, Reason: "completed", Actor: "w1",
		Result: []byte(`{"ok":1}`),
	},
	"failed": {Outcome: OutcomeFailed, Said: SaidFailed, Reason: "failed", Actor: "w1", Error: "boom"},
	"failed for good": {
		Outcome: OutcomeFailed, Said: SaidFailed, Reason: "failed", Actor: "w1", Error: "boom",
		Final: true,
	},
	"obeyed":   {Outcome: OutcomeCancelled, Said: SaidCancelled, Reason: "cancelled", Actor: "w1"},
	"released": {Outcome: OutcomeReleased, Said: SaidReleased, Reason: "released", Actor: "w1"},
	"asked": {
		Outcome: OutcomeWaiting, Said: SaidWaiting, Reason: "asked", Actor: "w1", Delay: 5 * time.Second,
		Question: &lessor.Question{Text: "Deploy?", Choices: []string{"yes", "no"}},
	},
	"revoked":     {Outcome: OutcomeFailed, Reason: ReasonRevoked, Actor: "olga", Error: "node is going"},
	"lapsed":      Lapse(OutcomeExpired),
	"out of time": Lapse(OutcomeFailed),
	"forced":      {Outcome: OutcomeCancelled, Reason: ReasonForced, Actor: "olga"},
}

// TestConclude goes through every way to end × cancel requested × attempts left × interruptions at the limit.
func TestConclude(t *testing.T) {
	type want struct {
		place Place
		state lessor.State // shown where the job goes
	}
	final := func(s lessor.State) want { return want{Ended, s} }
	waits := func(s lessor.State) want { return want{Delayed, s} }
	queued := want{InQueue, lessor.Queued}
	for name, row := range map[string]struct{ left, last, cancel want }{
		"completed":       {final("completed"), final("completed"), final("completed")},
		"failed":          {waits("failed"), final("failed"), final("cancelled")},
		"failed for good": {final("failed"), final("failed"), final("cancelled")},
		"released":        {queued, queued, final("cancelled")},
		"asked":           {waits("waiting"), waits("waiting"), final("cancelled")},
		"revoked":         {waits("failed"), final("failed"), final("cancelled")},
		"lapsed":          {waits("expired"), final("expired"), final("cancelled")},
		"out of time":     {waits("failed"), final("failed"), final("cancelled")},
		"forced":          {final("cancelled"), final("cancelled"), final("cancelled")},
		"obeyed":          {want{}, want{}, final("cancelled")}, // without a request: 409
	} {
		for _, cancel := range []lessor.Instant{0, after(time.Second)} {
			for attempt, w := range map[int]want{1: row.left, 4: row.left, 5: row.last, 6: row.last} {
				for _, interruptions := range []int{0, 19, 20} {
					if cancel != 0 {
						w = row.cancel
					}
					if name == "released" && cancel == 0 && interruptions == 20 {
						w = final("failed")
					}
					h := lease(func(h *Held) {
						h.CancelAt, h.Turn.Attempt, h.Turn.Interruptions = cancel, attempt, interruptions
					})
					next, err := Conclude(h, ends[name], usual, after(10*time.Second), 0.5)
					got := want{next.Place, (&Standing{Place: next.Place, Wait: next.Wait, Done: next.Done}).State()}
					if w == (want{}) {
						refused(t, err, lessor.CodeConflict)
						got.state = ""
					}
					if got != w {
						t.Errorf(
							"%s, attempt %d of 5, cancel at %v, %d interruptions: goes to place %d as %q, "+
								"want %d as %q",
							name, attempt, cancel != 0, interruptions, got.place, got.state, w.place, w.state)
					}
				}
			}
		}
	}
}

func TestConcludeKeepsWhatTheAttemptWas(t *testing.T) {
	h := lease(func(h *Held) { h.FirstBeatAt = after(time.Second) })
	now := after(10 * time.Second)
	attempt := func(e End) Attempt {
		a := Attempt{
			Turn: h.Turn, Lease: h.ID, Worker: "w1", GrantedAt: start, FirstBeatAt: after(time.Second), EndedAt: now,
			Outcome: e.Outcome, Said: e.Said, Reason: e.Reason, Actor: e.Actor, Error: e.Error,
		}
		a.Turn.Steps = 4 // submitted, granted, first heartbeat, and this end
		return a
	}
	turn := h.Turn
	turn.QueuedAt, turn.Steps = now, 4
	given := turn
	given.Attempt, given.Interruptions = 0, 1
	later := ends["released"]
	later.Delay = time.Minute
	for _, c := range []struct {
		name string
		end  End
		want Next
	}{
		{"completed", ends["completed"], Next{Place: Ended, Done: &Done{
			State:   "completed",
			Attempt: attempt(ends["completed"]), Result: []byte(`{"ok":1}`),
		}}},
		{
			"failed for good", ends["failed for good"],
			Next{Place: Ended, Done: &Done{State: "failed", Attempt: attempt(ends["failed for good"])}},
		},
		{"failed", ends["failed"], Next{
			Place: Delayed, Turn: turn, Wait: Wait{Until: now.Add(500 * time.Millisecond), State: lessor.Failed},
			Attempt: new(attempt(ends["failed"])),
		}},
		{"expired", ends["lapsed"], Next{
			Place: Delayed, Turn: turn, Wait: Wait{Until: now.Add(time.Second), State: lessor.Expired},
			Attempt: new(attempt(ends["lapsed"])),
		}},
		{"released", ends["released"], Next{Place: InQueue, Turn: given, Attempt: new(attempt(ends["released"]))}},
		{"released for later", later, Next{
			Place: Delayed, Turn: given, Wait: Wait{Until: now.Add(time.Minute), State: lessor.Queued},
			Attempt: new(attempt(ends["released"])),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Conclude(h, c.end, usual, now, 0.5)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			same(t, "where the job goes", got, c.want)
		})
	}
}

func TestReleasePastTheLimitFailsTheJobWithItsReason(t *testing.T) {
	for _, c := range []struct {
		before int
		place  Place
	}{
		{19, InQueue}, // the 20th release
		{20, Ended},   // the 21st
	} {
		h := lease(func(h *Held) { h.Turn.Interruptions = c.before })
		next, err := Conclude(h, ends["released"], usual, start, 0)
		if err != nil || next.Place != c.place {
			t.Fatalf("release number %d: place %d, error %v; want place %d", c.before+1, next.Place, err, c.place)
		}
		if next.Place == InQueue {
			same(t, "the interruptions of a job that goes on", next.Turn.Interruptions, 20)
			continue
		}
		a := next.Done.Attempt
		same(t, "the end", [2]string{string(a.Outcome), a.Reason}, [2]string{"failed", "too_many_interruptions"})
		same(t, "the interruptions", a.Turn.Interruptions, 21)
		same(t, "what the worker said, so that its repetition is answered the same", a.Said, SaidReleased)
	}
}

func TestUnknownOutcomeIsAFault(t *testing.T) {
	_, err := Conclude(lease(), End{Outcome: "vanished"}, usual, start, 0)
	refused(t, err, lessor.CodeInternal)
}

func TestBackoffDoublesUpToItsBound(t *testing.T) {
	almost := 1 - 1e-9
	for _, c := range []struct {
		attempt int
		random  float64
		retries Retries
		want    time.Duration
	}{
		{1, 0, usual, 0},
		{1, 0.5, usual, 500 * time.Millisecond},
		{1, almost, usual, 999 * time.Millisecond},
		{2, 0.5, usual, time.Second},
		{3, 0.5, usual, 2 * time.Second},
		{9, 0.5, usual, 128 * time.Second},  // of 256 s
		{10, 0.5, usual, 150 * time.Second}, // 512 s is over the bound of 5 min
		{50, 0.5, usual, 150 * time.Second},
		{50, almost, usual, 299999 * time.Millisecond},
		{50, almost, Retries{BackoffFirst: maxBackoff, BackoffMax: maxBackoff}, maxBackoff - 3*time.Millisecond},
		{50, almost, Retries{BackoffFirst: time.Millisecond, BackoffMax: maxBackoff}, maxBackoff - 3*time.Millisecond},
		{50, almost, Retries{}, 0},
	} {
		t.Run(fmt.Sprintf("attempt %d of %v random %.1f", c.attempt, c.retries.BackoffFirst, c.random),
			func(t *testing.T) {
				h := lease(func(h *Held) { h.Turn.Attempt, h.Turn.MaxAttempts = c.attempt, 51 })
				next, err := Conclude(h, ends["failed"], c.retries, start, c.random)
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				same(t, "the wait", next.Wait.Until.Sub(start), c.want)
			})
	}
}

func TestExpiryWaitsExactlyTheFirstBackoff(t *testing.T) {
	for _, attempt := range []int{1, 7, 50} {
		for _, random := range []float64{0, 0.99} {
			h := lease(func(h *Held) { h.Turn.Attempt, h.Turn.MaxAttempts = attempt, 51 })
			next, err := Conclude(h, Lapse(OutcomeExpired), usual, start, random)
			if err != nil || next.Wait.Until != after(time.Second) {
				t.Errorf("attempt %d expired: retry at %s (error %v), want %s", attempt, next.Wait.Until, err,
					after(time.Second))
			}
		}
	}
}

func TestPromoteQueuesAndCountsOnlyARetryAsAStep(t *testing.T) {
	turn := Turn{Job: jobID(1), Seq: 9, Attempt: 2, MaxAttempts: 5, Fence: 77, Steps: 4, QueuedAt: start}
	for state, steps := range map[lessor.State]int{lessor.Queued: 4, lessor.Failed: 5, lessor.Expired: 5} {
		want := turn
		want.Steps, want.QueuedAt = steps, after(time.Minute)
		same(t, "the turn of a job that waited as "+string(state),
			Promote(turn, Wait{State: state}, after(time.Minute)), want)
	}
}

func TestLapseNamesWhatRanOut(t *testing.T) {
	same(t, "the end of a lease without beats", Lapse(OutcomeExpired),
		End{Outcome: OutcomeExpired, Reason: "lease_expired", Actor: "scheduler"})
	same(t, "the end of a lease past max_runtime", Lapse(OutcomeFailed),
		End{Outcome: OutcomeFailed, Reason: "max_runtime_exceeded", Actor: "scheduler"})
}

func TestEndedReasonNamesARevokeBeforeItsOutcome(t *testing.T) {
	for _, c := range []struct {
		outcome      Outcome
		reason, want string
	}{
		{OutcomeFailed, ReasonRevoked, "revoked"},
		{OutcomeFailed, "failed", "failed"},
		{OutcomeFailed, ReasonMaxRuntime, "failed"},
		{OutcomeExpired, ReasonLeaseExpired, "expired"},
		{OutcomeCompleted, "completed", "completed"},
		{OutcomeReleased, "released", "released"},
		{OutcomeWaiting, "asked", "waiting"},
		{OutcomeCancelled, ReasonForced, "cancelled"},
	} {
		if got := EndedReason(c.outcome, c.reason); got != c.want {
			t.Errorf("a lease that ended %s (%s) is described as %q, want %q", c.outcome, c.reason, got, c.want)
		}
	}
}

func TestReleaseCountsOnlyWithoutProgress(t *testing.T) {
	for _, c := range []struct {
		name             string
		before           int
		moved, uncounted bool
		place            Place
		want             int
	}{
		{"first", 0, false, false, InQueue, 1},
		{"again without progress", 19, false, false, InQueue, 20},
		{"once too often", 20, false, false, Ended, 21},
		{"after progress", 20, true, false, InQueue, 1},
		{"first after progress", 0, true, false, InQueue, 1},
		{"one that does not count", 20, false, true, InQueue, 20},
		{"one that does not count, after progress", 20, true, true, InQueue, 20},
	} {
		e := ends["released"]
		e.Moved, e.Uncounted = c.moved, c.uncounted
		h := lease(func(h *Held) { h.Turn.Interruptions = c.before })
		next, err := Conclude(h, e, usual, start, 0)
		if err != nil || next.Place != c.place {
			t.Fatalf("%s: place %d, error %v; want place %d", c.name, next.Place, err, c.place)
		}
		got := next.Turn.Interruptions
		if next.Place == Ended {
			got = next.Done.Attempt.Turn.Interruptions
		} else if next.Turn.Attempt != h.Turn.Attempt-1 {
			t.Errorf("%s: attempt %d after %d, want it given back", c.name, next.Turn.Attempt, h.Turn.Attempt)
		}
		if got != c.want {
			t.Errorf("%s: %d interruptions after %d, want %d", c.name, got, c.before, c.want)
		}
	}
}
