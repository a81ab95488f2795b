package rules

import (
	"encoding/json"
	"time"

	"lessor"
)

// State returns the state of the job.
func (s *Standing) State() lessor.State {
	switch s.Place {
	case Delayed:
		return s.Wait.State
	case Leased:
		return s.Held.State()
	case Ended:
		return s.Done.State
	}
	return lessor.Queued
}

// Show returns a job as callers see it.
func Show(s *Standing) lessor.Job {
	spec := s.Spec
	j := lessor.Job{
		ID: spec.ID, Type: spec.Lane.Type, Priority: spec.Lane.Priority, RequestedUnits: spec.Lane.Units,
		Unique: spec.Lane.Unique,
		State:  s.State(), Payload: spec.Payload, IdempotencyKey: optional(spec.IdempotencyKey), Tags: spec.Tags,
		CreatedAt: spec.CreatedAt, UpdatedAt: max(spec.CreatedAt, s.Turn.QueuedAt),
		TenantID: spec.Lane.Tenant, FairnessClass: spec.Lane.Class, LockKey: optional(spec.Lane.LockKey),
		Attempt: s.Turn.Attempt, MaxAttempts: s.Turn.MaxAttempts, Interruptions: s.interruptions(),
		RunAt: spec.RunAt, TraceID: spec.TraceID, DefinitionID: optional(spec.Lane.Definition), TickAt: spec.TickAt,
		Error: optional(s.LastError),
	}
	if j.Tags == nil {
		j.Tags = []string{}
	}
	if spec.MaxRuntime > 0 {
		seconds := int64(spec.MaxRuntime / time.Second)
		j.MaxRuntimeS = &seconds
	}
	switch s.Place {
	case Delayed:
		if s.Wait.State != lessor.Queued && s.Wait.State != lessor.Waiting {
			j.RetryAt = s.Wait.Until
		}
	case Leased:
		h := s.Held
		j.LeaseID, j.CancelRequested, j.Reattached = &h.ID, h.CancelAt != 0, h.Reattached > 0
		j.UpdatedAt = max(h.IssuedAt, h.BeatAt, h.CancelAt)
	case Ended:
		showDone(&j, s.Done)
	}
	if r := s.Report; r != nil {
		j.Progress, j.Message, j.Checkpoint, j.Question = r.Progress, r.Message, r.Checkpoint, s.question()
		j.MessagesSent, j.MessagesSeen = r.Sent, r.Seen
	}
	j.JournalEntries = s.entries()
	j.Payload, j.Result, j.Checkpoint = orNull(j.Payload), orNull(j.Result), orNull(j.Checkpoint)
	return j
}

func showDone(j *lessor.Job, d *Done) {
	j.Result, j.UpdatedAt = d.Result, d.Attempt.EndedAt
	switch {
	case d.State == lessor.Completed:
		j.Error = nil
	case d.Attempt.Error != "":
		j.Error = &d.Attempt.Error
	case d.State == lessor.Failed:
		j.Error = &d.Attempt.Reason
	}
}

// ShowLease returns a lease as callers see it: with its effective end.
func ShowLease(h *Held, now lessor.Instant, s Serving) lessor.Lease {
	return lessor.Lease{
		ID: h.ID, JobID: h.Turn.Job, WorkerID: h.Worker, CapacityUnits: h.Units, IssuedAt: h.IssuedAt,
		ExpiresAt: Effective(h, now, s), LastHeartbeat: h.BeatAt, Fence: h.Turn.Fence,
		TTLMS: h.TTL.Milliseconds(), HeartbeatAfterMS: Pace(h.TTL).Milliseconds(),
	}
}

// ShowGranted returns a lease as the answer to a request shows it. Its durations are what is left: a worker that
// repeats its request learns late of its lease, and would lose it by waiting for the full time.
func ShowGranted(h *Held, now lessor.Instant, s Serving) lessor.Lease {
	l := ShowLease(h, now, s)
	left := max(0, min(h.TTL, l.ExpiresAt.Sub(now)))
	l.TTLMS, l.HeartbeatAfterMS = left.Milliseconds(), max(Pace(left).Milliseconds(), 1)
	return l
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return new(s) // not &s, which would cost memory for "" too
}

func orNull(m json.RawMessage) json.RawMessage {
	if m == nil {
		return json.RawMessage("null")
	}
	return m
}

// ShowDefinition returns a definition as callers see it.
func ShowDefinition(d *Definition) lessor.Definition {
	shown := lessor.Definition{
		JobID: d.ID, TenantID: d.Tenant, Schedule: d.Schedule, HandlerID: d.Handler, LockKey: d.LockKey,
		MaxAttempts:       d.MaxAttempts,
		MaxRuntimeSeconds: int64(d.Timeout / time.Second), FairnessClass: d.Class, IsEnabled: d.Enabled,
		Payload:  d.Payload,
		Priority: d.Priority, RequestedUnits: d.Units, Timezone: d.Zone, Overlap: d.Overlap, CatchUp: d.CatchUp,
		CatchUpWindowSeconds: int64(d.CatchUpWindow / time.Second), JitterSeconds: int64(d.Jitter / time.Second),
		Circuit:  lessor.CircuitBounds{Failures: d.Failures, CooldownSeconds: int64(d.Cooldown / time.Second)},
		Backoff:  lessor.DefinitionBackoff{FirstMS: d.BackoffFirst.Milliseconds(), MaxMS: d.BackoffMax.Milliseconds()},
		ModuleID: optional(d.Module), Version: optional(d.Version), Paused: d.Paused, NextTickAt: d.NextTick,
		CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
	// An older node may have stored more than a timeout can be.
	if d.TimeoutSet && shown.MaxRuntimeSeconds <= maxTimeoutS || shown.MaxRuntimeSeconds == defaultTimeoutS {
		shown.TimeoutSeconds = new(shown.MaxRuntimeSeconds)
	}
	return shown
}
