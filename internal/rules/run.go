package rules

import (
	"lessor"
)

// RunOf returns the audit record of a job. A plain job that was never claimed has none.
func RunOf(s *Standing) (lessor.Run, bool) {
	started := s.StartedAt
	if s.Place == Leased && started == 0 {
		started = s.Held.IssuedAt
	}
	if started == 0 && s.Spec.Lane.Definition == "" {
		return lessor.Run{}, false
	}
	r := lessor.Run{
		RunID: s.Spec.ID, JobID: s.Spec.Lane.Definition, TenantID: s.Spec.Lane.Tenant, StartedAt: started,
		Attempts: s.Turn.Attempt, TraceID: s.Spec.TraceID, Status: RunStatus(s.Place, s.State(), started != 0),
	}
	if r.JobID == "" {
		r.JobID = r.RunID.String()
	}
	if !s.ErrorLease.IsZero() {
		r.LastErrorRef = s.ErrorLease.String()
	}
	if s.Place == Ended {
		r.EndedAt = s.Done.Attempt.EndedAt
		if s.Done.Attempt.failed() {
			r.LastErrorRef = s.Done.Attempt.errorRef()
		}
	}
	return r, true
}

// RunStatus returns the status of a job's run by the job's place and state, and whether it was ever claimed.
func RunStatus(p Place, s lessor.State, claimed bool) lessor.RunStatus {
	switch {
	case p == Leased && s == lessor.Running:
		return lessor.RunRunning
	case p == Leased:
		return lessor.RunClaimed
	case p == Ended && s == lessor.Completed:
		return lessor.RunSuccess
	case p == Ended:
		return lessor.RunFailed
	case !claimed:
		return lessor.RunQueued
	}
	return lessor.RunRetrying
}

// CircuitRun returns the audit record of a tick under an open circuit.
func CircuitRun(t *TickRow, trace string) lessor.Run {
	return lessor.Run{
		RunID: t.Run, JobID: t.Definition, TenantID: t.Tenant, Status: lessor.RunCircuitOpen, StartedAt: t.At,
		EndedAt: t.At, TraceID: trace,
	}
}

// ErrorOf returns the error of an attempt, false if it did not fail.
func ErrorOf(a *Attempt) (lessor.RunError, bool) {
	if !a.failed() {
		return lessor.RunError{}, false
	}
	return lessor.RunError{
		Ref: a.errorRef(), RunID: a.Turn.Job, Attempt: a.Turn.Attempt, Code: a.Reason, Message: a.LastError(),
		At: a.EndedAt,
	}, true
}

// LastError returns the error that a job shows after an attempt: the worker's text, or else the reason of the failure.
func (a *Attempt) LastError() string {
	if a.Error == "" && a.failed() {
		return a.Reason
	}
	return a.Error
}

// errorRef names the error of an attempt: by its lease, or by the job if it failed without one (see Reject).
func (a *Attempt) errorRef() string {
	if a.Lease.IsZero() {
		return a.Turn.Job.String()
	}
	return a.Lease.String()
}

func (a *Attempt) failed() bool { return a.Outcome == OutcomeFailed || a.Outcome == OutcomeExpired }

// CheckRuns refuses a filter that can never match.
func CheckRuns(f lessor.RunFilter) error {
	var c check
	c.page(f.Limit)
	if f.Status != "" {
		oneOf(&c, "status", new(string(f.Status)), lessor.RunStatuses()...)
	}
	if f.JobID != "" {
		c.text("jobId", &f.JobID, minName, maxName, "")
	}
	if f.Trace != "" {
		c.text("traceId", &f.Trace, 8, maxName, "")
	}
	return c.err()
}
