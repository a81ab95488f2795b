package httpapi

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"lessor"
	"lessor/internal/scheduler"
)

// beatBatch is the body of a batched heartbeat.
type beatBatch struct {
	WorkerID *string  `json:"worker_id"`
	LeaseIDs []string `json:"lease_ids"`
}

// completionBatch is the body of a batched completion.
type completionBatch struct {
	WorkerID *string                  `json:"worker_id"`
	Leases   []lessor.LeaseCompletion `json:"leases"`
}

// results is the answer to a batch: one result for each lease, in order.
type results[T appender] struct {
	Results []result[T] `json:"results"`
}

// result is the answer of a single call about one lease, or its refusal.
type result[T appender] struct {
	ok      *T
	refused *leaseRefused
}

// MarshalJSONTo writes the answer or the refusal.
func (r result[T]) MarshalJSONTo(e *jsontext.Encoder) error {
	if r.ok != nil {
		return json.MarshalEncode(e, r.ok)
	}
	return json.MarshalEncode(e, r.refused)
}

// variants lists the forms of a result for the OpenAPI document.
func (result[T]) variants() []any { return []any{*new(T), leaseRefused{}} }

type leaseBeaten struct {
	LeaseID string `json:"lease_id"`
	lessor.HeartbeatAnswer
}

type leaseEnded struct {
	LeaseID string `json:"lease_id"`
	OK      bool   `json:"ok"`
}

type leaseRefused struct {
	LeaseID     string      `json:"lease_id"`
	OK          bool        `json:"ok"`
	Status      int         `json:"status"`
	Code        lessor.Code `json:"code"`
	EndedReason *string     `json:"ended_reason"`
}

func (c *call) heartbeatAll(b *beatBatch) error {
	answers, err := c.api.scheduler.HeartbeatAll(c.r.Context(), c.caller, *b.WorkerID, b.LeaseIDs)
	if err != nil {
		return err
	}
	return answerAll(c, answers, func(a scheduler.LeaseAnswer) leaseBeaten { return leaseBeaten{a.LeaseID, a.Beat} })
}

func (c *call) completeAll(b *completionBatch) error {
	answers, err := c.api.scheduler.CompleteAll(c.r.Context(), c.caller, *b.WorkerID, b.Leases)
	if err != nil {
		return err
	}
	for i, a := range answers {
		if u, err := lessor.ParseUUID(a.LeaseID); err == nil && a.Err == nil {
			c.api.traces.Ended(c.r.Context(), lessor.LeaseID{UUID: u}, *b.Leases[i].Status)
		}
	}
	return answerAll(c, answers, func(a scheduler.LeaseAnswer) leaseEnded { return leaseEnded{a.LeaseID, true} })
}

// answerAll sends one result for each answer.
func answerAll[T appender](c *call, answers []scheduler.LeaseAnswer, ok func(scheduler.LeaseAnswer) T) error {
	rs := results[T]{Results: make([]result[T], len(answers))}
	for i, a := range answers {
		if a.Err != nil {
			e := c.refusal(a.Err)
			rs.Results[i].refused = &leaseRefused{
				LeaseID: a.LeaseID, Status: statuses[e.Code], Code: e.Code,
				EndedReason: cursorOf(e.EndedReason),
			}
			continue
		}
		v := ok(a)
		rs.Results[i].ok = &v
	}
	return c.answer(http.StatusOK, rs)
}
