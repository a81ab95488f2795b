package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"

	"lessor"
	"lessor/internal/scan"
)

// scanned is an answer that the scanner can read.
type scanned interface{ scan(s scanner) }

// decode reads an answer into v, a pointer.
func decode(b []byte, v any) error {
	if a, ok := v.(scanned); ok {
		if scan.Read(b, func(s *scan.Scanner) { a.scan(scanner{s}) }) {
			return nil
		}
		reflect.ValueOf(v).Elem().SetZero()
	}
	return json.Unmarshal(b, v)
}

// requestAnswer is the answer to a request: a denial, one grant, or several.
type requestAnswer struct {
	lessor.Denial
	Lease  *lessor.Lease  `json:"lease"`
	Job    *lessor.Job    `json:"job"`
	Grants []lessor.Grant `json:"grants"`
}

func (a *requestAnswer) scan(s scanner) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		switch string(name) {
		case "denied":
			s.Bool(&a.Denied)
		case "code":
			s.Text(slotOther, (*string)(&a.Code))
		case "reason":
			s.Text(slotOther, &a.Reason)
		case "retry_after_ms":
			a.RetryAfterMS = s.Whole()
		case "lease":
			scan.Optional(s.Scanner, &a.Lease, s.lease)
		case "job":
			scan.Optional(s.Scanner, &a.Job, s.job)
		case "grants":
			scan.List(s.Scanner, &a.Grants, s.grant)
		default:
			s.unknown(name)
		}
	}
}

var errEmptyGrant = errors.New("the server granted a request without a lease")

// result returns at least one grant, or a denial.
func (a *requestAnswer) result(worker, view *string) ([]lessor.Grant, *lessor.Denial, error) {
	switch {
	case a.Denied:
		return nil, &a.Denial, nil
	case a.Lease != nil && a.Job != nil:
		a.Grants = []lessor.Grant{{Lease: *a.Lease, Job: *a.Job}}
	case len(a.Grants) == 0:
		return nil, nil, errEmptyGrant
	}
	if view != nil && *view == lessor.ViewWork {
		for i := range a.Grants {
			fillIn(&a.Grants[i], *worker)
		}
	}
	return a.Grants, nil, nil
}

// fillIn sets what view "work" leaves out. A server of an older release leaves nothing out.
func fillIn(g *lessor.Grant, worker string) {
	l, j := &g.Lease, &g.Job
	if j.LeaseID != nil {
		return
	}
	l.JobID, l.WorkerID, l.LastHeartbeat = j.ID, worker, l.IssuedAt
	j.LeaseID, j.UpdatedAt = &l.ID, l.IssuedAt
	j.State = cmp.Or(j.State, lessor.Leased)
	j.FairnessClass = cmp.Or(j.FairnessClass, "default")
	j.RequestedUnits = cmp.Or(j.RequestedUnits, 1)
	l.CapacityUnits = j.RequestedUnits
	if j.Tags == nil {
		j.Tags = []string{}
	}
	for _, v := range []*json.RawMessage{&j.Checkpoint, &j.Result} {
		if *v == nil {
			*v = json.RawMessage("null")
		}
	}
}

// jobsAnswer is the answer to a batch of submissions: the jobs, or with view "ids" their ids.
type jobsAnswer struct {
	Jobs   []lessor.Job   `json:"jobs"`
	JobIDs []lessor.JobID `json:"job_ids"`
}

func (a *jobsAnswer) scan(s scanner) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		switch string(name) {
		case "jobs":
			scan.List(s.Scanner, &a.Jobs, s.job)
		case "job_ids":
			scan.List(s.Scanner, &a.JobIDs, func(id *lessor.JobID) { s.id(&id.UUID) })
		default:
			s.unknown(name)
		}
	}
}

// jobAnswer is the answer to one submission.
type jobAnswer struct{ lessor.Job }

func (a *jobAnswer) scan(s scanner) { s.job(&a.Job) }

// beatAnswer is the answer to one heartbeat.
type beatAnswer struct{ lessor.HeartbeatAnswer }

func (a *beatAnswer) scan(s scanner) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		s.beat(&a.HeartbeatAnswer, name)
	}
}

// journalAnswer is the answer to an append.
type journalAnswer struct{ lessor.JournalAnswer }

func (a *journalAnswer) scan(s scanner) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		if string(name) == "numbers" {
			scan.List(s.Scanner, &a.Numbers, s.int)
		} else {
			s.beat(&a.HeartbeatAnswer, name)
		}
	}
}

// resultsAnswer is the answer to a batched call.
type resultsAnswer struct {
	Results []leaseResult `json:"results"`
}

// leaseResult is the answer for one lease, or its refusal.
type leaseResult struct {
	lessor.HeartbeatAnswer
	LeaseID     lessor.LeaseID `json:"lease_id"`
	Code        lessor.Code    `json:"code"`
	Detail      string         `json:"detail"`
	EndedReason string         `json:"ended_reason"`
}

func (a *resultsAnswer) scan(s scanner) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		if string(name) == "results" {
			scan.List(s.Scanner, &a.Results, s.leaseResult)
		} else {
			s.unknown(name)
		}
	}
}

func (s scanner) leaseResult(r *leaseResult) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		switch string(name) {
		case "lease_id":
			s.id(&r.LeaseID.UUID)
		case "code":
			s.Text(slotWord, (*string)(&r.Code))
		case "detail":
			s.Text(slotOther, &r.Detail)
		case "ended_reason":
			if !s.Null() {
				s.Text(slotOther, &r.EndedReason)
			}
		default:
			s.beat(&r.HeartbeatAnswer, name)
		}
	}
}

func leaseAnswers(results []leaseResult) []LeaseAnswer {
	answers := make([]LeaseAnswer, len(results))
	for i := range results {
		r := &results[i]
		answers[i] = LeaseAnswer{LeaseID: r.LeaseID, Beat: r.HeartbeatAnswer}
		if !r.OK {
			answers[i].Err = &lessor.Error{Code: r.Code, Detail: r.Detail, EndedReason: r.EndedReason}
		}
	}
	return answers
}

// turnAnswer is the answer to a turn.
type turnAnswer struct {
	Complete  []leaseResult `json:"complete"`
	Heartbeat []leaseResult `json:"heartbeat"`
	Request   requestAnswer `json:"request"`
}

func (a *turnAnswer) scan(s scanner) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		switch string(name) {
		case "complete":
			scan.List(s.Scanner, &a.Complete, s.leaseResult)
		case "heartbeat":
			scan.List(s.Scanner, &a.Heartbeat, s.leaseResult)
		case "request":
			a.Request.scan(s)
		default:
			s.unknown(name)
		}
	}
}
