package rules

import (
	"fmt"

	"lessor"
)

// Change is what a request of an operator or a submitter does to a job: it moves, its lease gets a cancel
// request, or nothing.
type Change struct {
	Next        *Next  // where the job goes; nil = it stays
	CancelLease bool   // the live lease now carries a cancel request
	Notes       []Note // the entries of the record besides the attempt

	Question *lessor.Question // the job's question, now answered
}

// Cancel decides a request to cancel a job. A waiting job ends at once. The lease of a leased job gets a cancel
// request, which its worker receives with the next heartbeat; with force it ends now. A cancelled job stays as it is.
func Cancel(s *Standing, force bool, actor string, now lessor.Instant) (Change, error) {
	switch s.Place {
	case InQueue, Delayed:
		end := End{Outcome: OutcomeCancelled, Reason: ReasonCancelled, Actor: actor}
		return endWaiting(s.Turn, s.State(), end, now), nil
	case Leased:
		return cancelHeld(s.Held, force, actor, now)
	case Ended:
		if s.Done.State == lessor.Cancelled {
			return Change{}, nil
		}
		return Change{}, wrongState(s.Done.State, "cancelled")
	}
	return Change{}, lessor.ErrJobNotFound
}

// Reject ends a queued job whose payload is invalid. It was never granted.
func Reject(t Turn, why *lessor.Error, now lessor.Instant) Change {
	text := *why
	text.Code = ReasonInvalidPayload
	return endWaiting(t, lessor.Queued, End{
		Outcome: OutcomeFailed, Reason: ReasonInvalidPayload, Actor: ActorScheduler, Error: text.Error(),
	}, now)
}

// endWaiting ends a job that no worker holds. Its record has a note instead of an attempt.
func endWaiting(t Turn, from lessor.State, e End, now lessor.Instant) Change {
	a := Attempt{Turn: t, EndedAt: now, Outcome: e.Outcome, Reason: e.Reason, Actor: e.Actor, Error: e.Error}
	a.Turn.Steps, a.Turn.RowRef = a.Turn.Steps+1, 0
	n := finish(a, nil)
	return Change{Next: &n, Notes: []Note{{
		Job: t.Job, Fence: t.Fence, At: now, From: from, To: n.Done.State,
		Actor: e.Actor, Reason: e.Reason, Attempt: t.Attempt, QueuedAt: t.QueuedAt,
	}}}
}

func cancelHeld(h *Held, force bool, actor string, now lessor.Instant) (Change, error) {
	var c Change
	if h.CancelAt == 0 {
		c.CancelLease = true
		h.CancelAt = now
		c.Notes = []Note{{
			Job: h.Turn.Job, Fence: h.Turn.Fence, Held: true, At: now, From: h.State(), To: h.State(),
			Actor: actor, Reason: "cancel_requested", Lease: h.ID, Attempt: h.Turn.Attempt,
		}}
	}
	if !force {
		return c, nil
	}
	n, err := Conclude(h, End{Outcome: OutcomeCancelled, Reason: ReasonForced, Actor: actor}, Retries{}, now, 0)
	c.Next, c.CancelLease = &n, false
	return c, err
}

// Retry decides an operator's request to run a job again. A job that has ended is queued with at least one more
// attempt; a job that waits for its retry becomes due now. A job that was cancelled before its time waits for that time
// again.
func Retry(s *Standing, actor string, now lessor.Instant) (Change, error) {
	from := s.Wait.State
	t := s.Turn
	t.QueuedAt = now
	t.Steps++
	next := &Next{Place: InQueue}
	switch {
	case s.Spec.Payload == nil:
		return Change{}, errNoPayload
	case s.Place == Ended && s.Done.State != lessor.Completed:
		from = s.Done.State
		t.MaxAttempts, t.Interruptions = max(t.MaxAttempts, t.Attempt+1), 0
		if a := s.Done.Attempt; !a.Lease.IsZero() {
			next.Attempt = &a
		}
		if s.Spec.RunAt > now {
			next.Place, next.Wait = Delayed, Wait{Until: s.Spec.RunAt, State: lessor.Queued}
		}
	case s.Place == Delayed && from != lessor.Queued && from != lessor.Waiting:
	default:
		return Change{}, wrongState(s.State(), "retried")
	}
	next.Turn = t
	return Change{Next: next, Notes: []Note{{
		Job: t.Job, Fence: t.Fence, At: now, From: from, To: lessor.Queued, Actor: actor, Reason: "retried",
		Attempt: t.Attempt,
	}}}, nil
}

var errNoPayload = conflict("the job's payload is no longer kept; submit it again")

func wrongState(is lessor.State, verb string) error {
	return conflict("the job is %s and cannot be %s", is, verb)
}

func conflict(format string, args ...any) error {
	return &lessor.Error{Code: lessor.CodeConflict, Detail: fmt.Sprintf(format, args...)}
}
