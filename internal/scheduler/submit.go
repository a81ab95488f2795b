package scheduler

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

// submitCall is one submission, or a batch that is stored whole or not at all.
type submitCall struct {
	call
	specs   []*rules.Spec
	batch   bool
	unfit   []error   // why each job would be refused that has a key, if the key is new
	checked *handlers // the schemas that its payloads were checked against
	out     []Submitted
}

func (c *submitCall) size() int {
	n := 0
	for _, s := range c.specs {
		n += len(s.Payload) + 200
	}
	return n
}

// CheckSubmission refuses a job that Submit would refuse for its fields, and stores nothing.
func (s *Scheduler) CheckSubmission(c Caller, sub lessor.Submission) error {
	_, err := s.one(c, &sub)
	return err
}

func (s *Scheduler) one(c Caller, sub *lessor.Submission) (*submitCall, error) {
	book, err := s.schemas()
	if err != nil {
		return nil, err
	}
	o := &submitCall{call: s.newCall(), checked: book}
	spec, unfit, err := s.spec(c, sub, o, "")
	o.specs, o.unfit = []*rules.Spec{spec}, []error{unfit}
	return o, err
}

// Submit stores a job. A known idempotency key gives the first job.
func (s *Scheduler) Submit(ctx context.Context, c Caller, sub lessor.Submission) (Submitted, error) {
	o, err := s.one(c, &sub)
	if err != nil {
		return Submitted{}, err
	}
	if err := s.do(ctx, &c, o); err != nil {
		return Submitted{}, err
	}
	return o.out[0], nil
}

// SubmitBatch stores jobs, all or none, and answers in the same order.
func (s *Scheduler) SubmitBatch(ctx context.Context, c Caller, subs []lessor.Submission) ([]Submitted, error) {
	o, err := s.batch(c, subs)
	if err != nil {
		return nil, err
	}
	if err := s.do(ctx, &c, o); err != nil {
		return nil, err
	}
	return o.out, nil
}

// CheckBatch refuses jobs that SubmitBatch would refuse for their fields, and stores nothing.
func (s *Scheduler) CheckBatch(c Caller, subs []lessor.Submission) error {
	_, err := s.batch(c, subs)
	return err
}

func (s *Scheduler) batch(c Caller, subs []lessor.Submission) (*submitCall, error) {
	if err := rules.BatchSize("jobs", len(subs)); err != nil {
		return nil, err
	}
	book, err := s.schemas()
	if err != nil {
		return nil, err
	}
	o := &submitCall{
		call: s.newCall(), specs: make([]*rules.Spec, len(subs)), unfit: make([]error, len(subs)), checked: book,
		batch: true,
	}
	var faults rules.Faults
	for i := range subs {
		if o.specs[i], o.unfit[i], err = s.spec(c, &subs[i], o, fmt.Sprintf("jobs[%d].", i)); err != nil {
			if err := faults.Add(err); err != nil {
				return nil, err
			}
		}
	}
	return o, faults.Err()
}

// spec turns one submission into a job that can be stored, with its id made before the transaction. A job with a key
// that is unfit may be known: only the transaction can refuse it.
func (s *Scheduler) spec(c Caller, sub *lessor.Submission, o *submitCall, prefix string) (
	spec *rules.Spec, unfit, err error,
) {
	cfg := s.submitConfig()
	spec, err = rules.Submit(sub, c.Tenant, cfg, prefix)
	if spec == nil {
		return nil, nil, err
	}
	unfit = o.checked.join(rules.Fits(spec, cfg, prefix), spec.Lane.Type, spec.Payload, prefix)
	if err != nil || spec.IdempotencyKey == "" {
		var faults rules.Faults
		if err = cmp.Or(faults.Add(err), faults.Add(unfit), faults.Err()); err != nil {
			return nil, nil, err
		}
	}
	spec.ID = lessor.JobID{UUID: s.newUUID()}
	spec.Actor, spec.TraceID = c.Actor, c.traceOf(spec.ID)
	return spec, unfit, nil
}

func (s *Scheduler) submitConfig() rules.SubmitConfig {
	cfg := s.cfg.Jobs
	cfg.FitUnits = int(s.fit.Load())
	return cfg
}

// traceOf returns the trace id of a new job: the caller's if it sent one.
func (c Caller) traceOf(id lessor.JobID) string {
	if c.Traced {
		return c.TraceID
	}
	return traceOf(id)
}

// traceOf makes a trace id from a job's id, for a job that was submitted outside any trace.
func traceOf(id lessor.JobID) string { return hex.EncodeToString(id.UUID[:]) }
