package lessor

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// SubmitOptions are the settings of a job that a program submits. A field that is zero takes its default, and a nil
// *SubmitOptions takes all defaults.
type SubmitOptions struct {
	// Tenant is the tenant that the job belongs to. The default is the tenant of the caller's token, or no tenant.
	Tenant TenantID
	// Class is the fairness class inside the tenant. The default is "default".
	Class string
	// Priority is "high", "normal", "low" or "background". The default is "normal".
	Priority string
	// IdempotencyKey makes a repeated submission return the first job instead of a second one.
	IdempotencyKey string
	// RunAt is the earliest time at which the job may run. The default is now.
	RunAt time.Time
	// Delay is how long after the submission the job may run, at most 366 days. Set RunAt or Delay, not both.
	Delay time.Duration
	// MaxAttempts is how many attempts the job has. The default is the server's jobs.max_attempts.
	MaxAttempts int
	// MaxRuntime bounds one attempt. It is rounded up to whole seconds; the default is no bound.
	MaxRuntime time.Duration
	// BackoffFirst and BackoffMax bound the delay before a retry. The defaults are the server's.
	BackoffFirst, BackoffMax time.Duration
	// Units is the capacity that the job needs. The default is 1.
	Units int
	// Unique grants the job only to a worker that holds no other lease.
	Unique bool
	// LockKey names a lock: of a tenant's jobs with the same key, at most one is leased at a time.
	LockKey string
	// Tags are labels to find the job by.
	Tags []string
}

// Submission returns the body that submits a job of jobType with these options. The payload is encoded as JSON and must
// give an object; nil means {}. Equal options give equal bodies, so that a submission with a key can be repeated.
func (o *SubmitOptions) Submission(jobType string, payload any) (Submission, error) {
	s := Submission{Type: &jobType}
	if payload != nil {
		raw, err := json.Marshal(payload)
		if err != nil {
			return s, fmt.Errorf("encode the payload of a %s job: %w", jobType, err)
		}
		s.Payload = raw
	}
	if o == nil {
		return s, nil
	}
	if o.Delay != 0 && !o.RunAt.IsZero() {
		return s, errors.New("SubmitOptions sets both RunAt and Delay")
	}
	if o.Delay > 0 {
		s.DelayMS = new((o.Delay + time.Millisecond - 1).Milliseconds())
	}
	if !o.RunAt.IsZero() {
		s.RunAt = new(o.RunAt.Format(time.RFC3339Nano))
	}
	if !o.Tenant.IsZero() {
		s.TenantID = new(o.Tenant.String())
	}
	if o.BackoffFirst != 0 || o.BackoffMax != 0 {
		s.Backoff = &BackoffAsk{
			FirstMS: given(o.BackoffFirst.Milliseconds()),
			MaxMS:   given(o.BackoffMax.Milliseconds()),
		}
	}
	s.FairnessClass, s.Priority, s.LockKey = given(o.Class), given(o.Priority), given(o.LockKey)
	s.IdempotencyKey, s.Unique, s.Tags = given(o.IdempotencyKey), given(o.Unique), o.Tags
	s.MaxAttempts, s.RequestedUnits = given(int64(o.MaxAttempts)), given(int64(o.Units))
	s.MaxRuntimeS = given(int64((o.MaxRuntime + time.Second - 1) / time.Second))
	return s, nil
}

// given returns a pointer to v, or nil if v is zero.
func given[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// Submitted is the answer to a submission.
type Submitted struct {
	Job
	// Existing reports that the idempotency key was known: Job is the first job submitted with it.
	Existing bool `json:"-"`
}
