package rules

import (
	"encoding/json"
	"time"

	"lessor"
)

// The reasons, in the record and as a job's error, of ends that no worker asked for.
const (
	ReasonLeaseExpired         = "lease_expired"
	ReasonMaxRuntime           = "max_runtime_exceeded"
	ReasonTooManyInterruptions = "too_many_interruptions"
	ReasonRevoked              = "revoked"
	ReasonCancelled            = "cancelled"
	ReasonForced               = "cancelled_by_force"
	ReasonInvalidPayload       = "invalid_payload"
)

// End is the requested end of an attempt.
type End struct {
	Outcome Outcome
	Said    Said
	Reason  string
	Actor   string
	Error   string
	Result  json.RawMessage
	Final   bool          // a failure that is not to be retried
	Delay   time.Duration // of a release; how long a question waits for its answer

	Question *lessor.Question // of OutcomeWaiting

	Report Report // the last; fields that are nil stay as they were

	Uncounted bool // a release that is no interruption
	Moved     bool // a release of a job that has shown progress since its last interruption
}

// Retries bounds what happens after an attempt.
type Retries struct {
	BackoffFirst     time.Duration
	BackoffMax       time.Duration
	MaxInterruptions int
}

// Next is where a job goes after an attempt ended.
type Next struct {
	Place   Place    // InQueue, Delayed or Ended
	Turn    Turn     // InQueue, Delayed
	Wait    Wait     // Delayed
	Attempt *Attempt // the attempt, if the job goes on
	Done    *Done    // Ended
}

// Conclude decides where a job goes when its live lease h ends with e. random is uniform in [0, 1). An attempt that was
// released does not count. Once an attempt has appended to the journal and has not failed, those before it do not count
// any more: less is left to do, and as a journal is bounded, attempts are.
func Conclude(h *Held, e End, r Retries, now lessor.Instant, random float64) (Next, error) {
	if e.Outcome == OutcomeCancelled && e.Said != SaidNothing && h.CancelAt == 0 {
		return Next{}, conflict("no cancel was requested for this job; end it as completed or failed")
	}
	a := attemptOf(h, e, now)
	if h.CancelAt != 0 && e.Outcome != OutcomeCompleted {
		a.Outcome = OutcomeCancelled
	}
	t := h.Turn
	t.QueuedAt, t.Steps = now, h.Steps()+1
	a.Turn.Steps = t.Steps
	if h.Journaled() && a.Outcome != OutcomeFailed {
		t.Attempt, t.Interruptions = 1, 0
	}
	switch a.Outcome {
	case OutcomeCompleted, OutcomeCancelled:
		return finish(a, e.Result), nil
	case OutcomeReleased:
		t.Interruptions = interruptions(t.Interruptions, e)
		if t.Interruptions > r.MaxInterruptions && !e.Uncounted {
			a.Outcome, a.Reason, a.Turn.Interruptions = OutcomeFailed, ReasonTooManyInterruptions, t.Interruptions
			return finish(a, nil), nil
		}
		t.Attempt--
		if e.Delay > 0 {
			return Next{
				Place: Delayed, Turn: t, Attempt: &a,
				Wait: Wait{Until: now.Add(e.Delay), State: lessor.Queued},
			}, nil
		}
		return Next{Place: InQueue, Turn: t, Attempt: &a}, nil
	case OutcomeWaiting:
		t.Attempt--
		return Next{
			Place: Delayed, Turn: t, Attempt: &a,
			Wait: Wait{Until: now.Add(e.Delay), State: lessor.Waiting},
		}, nil
	case OutcomeFailed, OutcomeExpired:
		if e.Final || t.Attempt >= t.MaxAttempts {
			return finish(a, nil), nil
		}
		wait := Wait{Until: now.Add(r.BackoffFirst), State: lessor.Expired}
		if a.Outcome == OutcomeFailed {
			wait = Wait{Until: now.Add(backoff(t.Attempt, r, random)), State: lessor.Failed}
		}
		return Next{Place: Delayed, Turn: t, Wait: wait, Attempt: &a}, nil
	}
	return Next{}, &lessor.Error{Code: lessor.CodeInternal, Detail: "unknown outcome " + string(a.Outcome)}
}

// interruptions returns the number since the last progress, after a release e.
func interruptions(before int, e End) int {
	switch {
	case e.Uncounted:
		return before
	case e.Moved:
		return 1
	}
	return before + 1
}

func attemptOf(h *Held, e End, now lessor.Instant) Attempt {
	return Attempt{
		Turn: h.Turn, Lease: h.ID, Worker: h.Worker, Taker: h.Taker, GrantedAt: h.IssuedAt, FirstBeatAt: h.FirstBeatAt,
		EndedAt: now,
		Outcome: e.Outcome, Said: e.Said, Reason: e.Reason, Actor: e.Actor, Error: e.Error,
	}
}

func finish(a Attempt, result json.RawMessage) Next {
	return Next{Place: Ended, Done: &Done{State: lessor.State(a.Outcome), Attempt: a, Result: result}}
}

// Promote returns the turn of a waiting job that is due.
func Promote(t Turn, w Wait, now lessor.Instant) Turn {
	t.QueuedAt = now
	if w.State != lessor.Queued {
		t.Steps++ // failed, expired or waiting becomes queued
	}
	return t
}

// backoff returns the delay before the attempt after attempt n: uniform(0, min(max, first·2ⁿ⁻¹)).
func backoff(n int, r Retries, random float64) time.Duration {
	bound := r.BackoffFirst
	for i := 1; i < n && bound < r.BackoffMax; i++ {
		bound *= 2
	}
	return time.Duration(random * float64(min(bound, r.BackoffMax)))
}

// Lapse returns the end of a lease that lapsed.
func Lapse(o Outcome) End {
	if o == OutcomeFailed {
		return End{Outcome: OutcomeFailed, Reason: ReasonMaxRuntime, Actor: ActorScheduler}
	}
	return End{Outcome: OutcomeExpired, Reason: ReasonLeaseExpired, Actor: ActorScheduler}
}

// TakenAway reports whether an attempt ended because an operator or the monitor took its lease. The worker must be
// told, because it neither ended the lease nor could foresee its end.
func TakenAway(a *Attempt) bool {
	return a.Reason == ReasonForced || a.Reason == ReasonRevoked || a.Reason == ReasonHeartbeatStopped
}

// EndedReason says how a lease ended, for a late caller.
func EndedReason(o Outcome, reason string) string {
	if reason == ReasonRevoked {
		return ReasonRevoked
	}
	return string(o)
}
