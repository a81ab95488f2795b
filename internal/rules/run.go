package rules

import (
	"slices"

	"lessor"
)

// RunOf returns the audit record of a job. A job that was never claimed has none.
func RunOf(s *Standing) (lessor.Run, bool) {
	started := s.StartedAt
	if s.Place == Leased && started == 0 {
		started = s.Held.IssuedAt
	}
	if started == 0 {
		return lessor.Run{}, false
	}
	r := lessor.Run{
		RunID: s.Spec.ID, JobID: s.Spec.Lane.Definition, TenantID: s.Spec.Lane.Tenant, StartedAt: started,
		Attempts: s.Turn.Attempt, TraceID: s.Spec.TraceID, Status: lessor.RunRetrying,
	}
	if r.JobID == "" {
		r.JobID = r.RunID.String()
	}
	failed := s.ErrorLease
	switch s.Place {
	case Leased:
		r.Status = lessor.RunClaimed
		if s.Held.FirstBeatAt != 0 {
			r.Status = lessor.RunRunning
		}
	case Ended:
		r.Status, r.EndedAt = lessor.RunFailed, s.Done.Attempt.EndedAt
		if s.Done.State == lessor.Completed {
			r.Status = lessor.RunSuccess
		}
		if o := s.Done.Attempt.Outcome; o == OutcomeFailed || o == OutcomeExpired {
			failed = s.Done.Attempt.Lease
		}
	}
	if !failed.IsZero() {
		r.LastErrorRef = failed.String()
	}
	return r, true
}

// CircuitRun returns the audit record of a tick under an open circuit.
func CircuitRun(t *TickRow, trace string) lessor.Run {
	return lessor.Run{
		RunID: t.Run, JobID: t.Definition, TenantID: t.Tenant, Status: lessor.RunCircuitOpen, StartedAt: t.At, EndedAt: t.At, TraceID: trace,
	}
}

// ErrorOf returns what went wrong in an attempt; false if nothing did.
func ErrorOf(a *Attempt) (lessor.RunError, bool) {
	if a.Outcome != OutcomeFailed && a.Outcome != OutcomeExpired {
		return lessor.RunError{}, false
	}
	e := lessor.RunError{
		Ref: a.Lease.String(), RunID: a.Turn.Job, Attempt: a.Turn.Attempt, Code: a.Reason, Message: a.Error, At: a.EndedAt,
	}
	if e.Message == "" {
		e.Message = a.Reason
	}
	return e, true
}

// CheckRuns refuses a filter that can never match.
func CheckRuns(f lessor.RunFilter) error {
	var c check
	c.page(f.Limit)
	if f.Status != "" && !slices.Contains(lessor.RunStatuses(), f.Status) {
		c.fail("status", "must be one of %v, not %q", lessor.RunStatuses(), f.Status)
	}
	if f.JobID != "" {
		c.text("jobId", &f.JobID, minName, maxName, "")
	}
	if f.Trace != "" {
		c.text("traceId", &f.Trace, 8, maxName, "")
	}
	return c.err()
}
