package rules

import (
	"encoding/json"
	"time"

	"lessor"
)

// The words with which the record and a job's error name ends that no worker asked for.
const (
	ReasonLeaseExpired         = "lease_expired"
	ReasonMaxRuntime           = "max_runtime_exceeded"
	ReasonTooManyInterruptions = "too_many_interruptions"
	ReasonRevoked              = "revoked"
	ReasonCancelled            = "cancelled"
	ReasonForced               = "cancelled_by_force"
	ReasonInvalidPayload       = "invalid_payload"
)

// End is how somebody wants an attempt to end.
type End struct {
	Outcome Outcome
	Said    Said
	Reason  string
	Actor   string
	Error   string
	Result  json.RawMessage
	Final   bool          // a failure that is not to be retried
	Delay   time.Duration // of a release

	// Of a release: Uncounted is no interruption; Moved says that the job has shown progress since the last that was one.
	Uncounted bool
	Moved     bool
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

// Conclude decides what becomes of a job whose live lease h ends by e. random is uniform in [0, 1).
func Conclude(h *Held, e End, r Retries, now lessor.Instant, random float64) (Next, error) {
	if e.Outcome == OutcomeCancelled && e.Said == SaidCancelled && h.CancelAt == 0 {
		return Next{}, &lessor.Error{Code: lessor.CodeConflict, Detail: "nobody asked to cancel this job; end it as completed or failed"}
	}
	a := attemptOf(h, e, now)
	if h.CancelAt != 0 && e.Outcome != OutcomeCompleted {
		a.Outcome = OutcomeCancelled
	}
	t := h.Turn
	t.QueuedAt, t.Steps = now, h.Steps()+1
	a.Turn.Steps = t.Steps
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
			return Next{Place: Delayed, Turn: t, Attempt: &a, Wait: Wait{Until: now.Add(e.Delay), State: lessor.Queued}}, nil
		}
		return Next{Place: InQueue, Turn: t, Attempt: &a}, nil
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

// interruptions counts those since the last sign of progress, after a release e.
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
		Turn: h.Turn, Lease: h.ID, Worker: h.Worker, Taker: h.Taker, GrantedAt: h.IssuedAt, FirstBeatAt: h.FirstBeatAt, EndedAt: now,
		Outcome: e.Outcome, Said: e.Said, Reason: e.Reason, Actor: e.Actor, Error: e.Error,
	}
}

func finish(a Attempt, result json.RawMessage) Next {
	return Next{Place: Ended, Done: &Done{State: lessor.State(a.Outcome), Attempt: a, Result: result}}
}

// Reject ends a job whose payload must not be handed out, under a lease that nobody was given.
func Reject(h *Held, why string, now lessor.Instant) Next {
	return finish(attemptOf(h, End{Outcome: OutcomeFailed, Reason: ReasonInvalidPayload, Actor: ActorScheduler, Error: why}, now), nil)
}

// Promote returns the turn of a waiting job whose time has come.
func Promote(t Turn, w Wait, now lessor.Instant) Turn {
	t.QueuedAt = now
	if w.State != lessor.Queued {
		t.Steps++ // failed or expired becomes queued
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

// Lapse returns the end of a lease that is over by itself.
func Lapse(o Outcome) End {
	if o == OutcomeFailed {
		return End{Outcome: OutcomeFailed, Reason: ReasonMaxRuntime, Actor: ActorScheduler}
	}
	return End{Outcome: OutcomeExpired, Reason: ReasonLeaseExpired, Actor: ActorScheduler}
}

// EndedReason names how a lease ended, for a caller that comes too late.
func EndedReason(o Outcome, reason string) string {
	if reason == ReasonRevoked {
		return ReasonRevoked
	}
	return string(o)
}
