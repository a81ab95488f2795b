package httpapi

import (
	"context"
	"errors"
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

type leaseExtended struct {
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
	return c.answer(http.StatusOK, results[leaseExtended]{c.beatResults(answers)})
}

func (c *call) completeAll(b *completionBatch) error {
	answers, err := c.api.scheduler.CompleteAll(c.r.Context(), c.caller, *b.WorkerID, b.Leases)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, results[leaseEnded]{c.completed(answers, b.Leases)})
}

func (c *call) completed(answers []scheduler.LeaseAnswer, ds []lessor.LeaseCompletion) []result[leaseEnded] {
	for i, a := range answers {
		if u, err := lessor.ParseUUID(a.LeaseID); err == nil && a.Err == nil {
			c.api.traces.Ended(c.r.Context(), lessor.LeaseID{UUID: u}, *ds[i].Status)
		}
	}
	return each(c, answers, func(a scheduler.LeaseAnswer) leaseEnded { return leaseEnded{a.LeaseID, true} })
}

func (c *call) beatResults(answers []scheduler.LeaseAnswer) []result[leaseExtended] {
	return each(c, answers, func(a scheduler.LeaseAnswer) leaseExtended { return leaseExtended{a.LeaseID, a.Beat} })
}

// each returns one result for each answer.
func each[T appender](c *call, answers []scheduler.LeaseAnswer, ok func(scheduler.LeaseAnswer) T) []result[T] {
	rs, oks := make([]result[T], len(answers)), make([]T, len(answers))
	for i, a := range answers {
		if a.Err != nil {
			e := c.refusal(a.Err)
			rs[i].refused = &leaseRefused{
				LeaseID: a.LeaseID, Status: statuses[e.Code], Code: e.Code,
				EndedReason: cursorOf(e.EndedReason),
			}
			continue
		}
		oks[i] = ok(a)
		rs[i].ok = &oks[i]
	}
	return rs
}

// turned is the answer to a turn. It has the parts that were asked for, each as the call for it alone has it.
type turned struct {
	Complete  []result[leaseEnded]    `json:"complete,omitempty"`
	Heartbeat []result[leaseExtended] `json:"heartbeat,omitempty"`
	Request   turnGrants              `json:"request,omitzero"`
}

// turnGrants is the answer to the request of a turn.
type turnGrants struct{ appender }

// MarshalJSONTo writes the grants or the denial.
func (g turnGrants) MarshalJSONTo(e *jsontext.Encoder) error {
	return json.MarshalEncode(e, g.appender)
}

// variants lists the forms of the answer for the OpenAPI document.
func (turnGrants) variants() []any { return []any{grantedAll{}, workGrants{}, lessor.Denial{}} }

func (t turned) appendTo(b []byte) []byte {
	b = append(b, '{')
	if len(t.Complete) > 0 {
		b = append(appendResults(append(b, `"complete":`...), t.Complete), ',')
	}
	if len(t.Heartbeat) > 0 {
		b = append(appendResults(append(b, `"heartbeat":`...), t.Heartbeat), ',')
	}
	if t.Request.appender != nil {
		b = append(t.Request.appendTo(append(b, `"request":`...)), ',')
	}
	b[len(b)-1] = '}' // there is at least one part
	return b
}

func (c *call) turn(t *lessor.Turn) error {
	var wait *int64
	if t.Request != nil {
		wait = t.Request.WaitMS
	}
	ctx, release, err := c.poll(wait)
	if err != nil {
		return err
	}
	defer release()
	a, err := c.api.scheduler.Turn(ctx, c.caller, *t)
	if err != nil {
		return turnErr(ctx, t, err)
	}
	answer := turned{Complete: c.completed(a.Complete, t.Complete), Heartbeat: c.beatResults(a.Heartbeat)}
	if t.Request != nil {
		answer.Request.appender = c.requested(a.Grants, a.Denial, t.Request.View, true)
	}
	return c.answer(http.StatusOK, answer)
}

// turnErr returns the refusal of a turn that ended with err. What ends a request that waits undoes no other part.
func turnErr(ctx context.Context, t *lessor.Turn, err error) error {
	refusal := heldErr(ctx, err)
	e, ok := errors.AsType[*lessor.Error](refusal)
	if !ok || e.Code != lessor.CodeUnavailable || !errors.Is(err, context.Canceled) ||
		len(t.Complete)+len(t.Heartbeat) == 0 {
		return refusal
	}
	unknown := *e
	unknown.OutcomeUnknown = true
	return &unknown
}
