package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// wrong is a verb with bodies that it must refuse. LONG is a text that is longer than anything may be.
type wrong struct {
	verb   string
	do     func(ctx context.Context, n *node, c scheduler.Caller, body []byte) error
	bodies []string
}

// taking returns how a verb is called with a body.
func taking[T any](
	do func(ctx context.Context, n *node, c scheduler.Caller, v T) error,
) func(context.Context, *node, scheduler.Caller, []byte) error {
	return func(ctx context.Context, n *node, c scheduler.Caller, body []byte) error {
		var v T
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		return do(ctx, n, c, v)
	}
}

// sendBadBodies calls every verb with bodies that must be refused. What is refused changes nothing (P15).
func (w *world) sendBadBodies(t *task) {
	c := w.client(t, scheduler.Caller{Actor: "vandal"})
	bound := c.caller
	bound.Tenant = new(tenant(1))
	long := strings.Repeat("x", 80<<10)
	for !w.quiet {
		v := &wrongs[c.random.IntN(len(wrongs))]
		body := strings.ReplaceAll(v.bodies[c.random.IntN(len(v.bodies))], "LONG", long)
		as := c.caller
		if strings.Contains(body, "00000000-0000-4000-8000-000000000009") { // another tenant than its own
			as = bound
		}
		err := c.do("wrong "+v.verb, func(ctx context.Context, n *node) error { return v.do(ctx, n, as, []byte(body)) })
		if err == nil {
			w.fail("P15", "%s accepts %.300s", v.verb, body)
		}
		c.rest(time.Duration(c.random.ExpFloat64() * float64(3*w.tempo)))
	}
}

var wrongs = []wrong{
	{"submit", taking(func(ctx context.Context, n *node, c scheduler.Caller, s lessor.Submission) error {
		_, err := n.Submit(ctx, c, s)
		return err
	}), []string{
		`{}`, `{"type":""}`, `{"type":"LONG"}`, `{"type":"a\u0000b"}`, `{"type":"vandal","payload":[1]}`,
		`{"type":"vandal","payload":{"a":"LONG"}}`, `{"type":"vandal","priority":"urgent"}`,
		`{"type":"vandal","requested_units":0}`, `{"type":"vandal","requested_units":100000}`,
		`{"type":"vandal","tags":["LONG"]}`, `{"type":"vandal","tenant_id":"nobody"}`,
		`{"type":"vandal","run_at":"tomorrow"}`, `{"type":"vandal","run_at":"2031-01-01T00:00:00Z","delay_ms":5}`,
		`{"type":"vandal","backoff":{"first_ms":500,"max_ms":100}}`, `{"type":"vandal","max_attempts":0}`,
		`{"type":"vandal","tenant_id":"00000000-0000-4000-8000-000000000009"}`,
		`{"type":"vandal","tags":[` + strings.Repeat(`"x",`, 100) + `"x"]}`,
	}},
	{"submit batch", taking(func(ctx context.Context, n *node, c scheduler.Caller, s []lessor.Submission) error {
		_, err := n.SubmitBatch(ctx, c, s)
		return err
	}), []string{
		`[]`, `[{"type":"vandal"},{"type":""},{"type":"vandal","delay_ms":-1}]`,
		`[` + strings.Repeat(`{"type":""},`, 120) + `{"type":""}]`,
		`[{"type":"vandal","tenant_id":"00000000-0000-4000-8000-000000000009"},{"type":"vandal"}]`,
	}},
	{"request", taking(func(ctx context.Context, n *node, c scheduler.Caller, r lessor.LeaseRequest) error {
		_, _, err := n.Request(ctx, c, r)
		return err
	}), []string{
		`{}`, `{"worker_id":""}`, `{"worker_id":"v","max_units":0}`, `{"worker_id":"v","ttl_ms":1}`,
		`{"worker_id":"v","types":["LONG"]}`, `{"worker_id":"v","view":"none"}`, `{"worker_id":"v","wait_ms":-1}`,
		`{"worker_id":"v","types":[` + strings.Repeat(`"x",`, 300) + `"x"]}`,
	}},
	{"turn", taking(func(ctx context.Context, n *node, c scheduler.Caller, t lessor.Turn) error {
		_, err := n.Turn(ctx, c, t)
		return err
	}), []string{`{}`, `{"worker_id":"v"}`, `{"worker_id":"v","request":{"max_leases":0}}`, `{"worker_id":"LONG"}`}},
	{"heartbeat", taking(func(ctx context.Context, n *node, c scheduler.Caller, h lessor.Heartbeat) error {
		_, err := n.Heartbeat(ctx, c, lessor.LeaseID{}, h)
		return err
	}), []string{
		`{}`, `{"worker_id":"v","progress":7}`, `{"worker_id":"v","checkpoint":"LONG"}`,
		`{"worker_id":"v","message":"LONG"}`,
		`{"worker_id":"v","output":[{}]}`, `{"worker_id":"v"}`,
		`{"worker_id":"v","output":[{"stream":"stdin","offset":0,"data":"eA=="}]}`,
	}},
	{"append", taking(func(ctx context.Context, n *node, c scheduler.Caller, a lessor.JournalAppend) error {
		_, err := n.Append(ctx, c, lessor.LeaseID{}, a)
		return err
	}), []string{
		`{}`, `{"worker_id":"v"}`, `{"worker_id":"v","entries":[{}]}`,
		`{"worker_id":"v","entries":[{"key":"a","data":"LONG"}]}`,
		`{"worker_id":"v","entries":[{"key":"a"}]}`,
	}},
	{"print", taking(func(ctx context.Context, n *node, c scheduler.Caller, r lessor.OutputReport) error {
		_, err := n.Print(ctx, c, lessor.LeaseID{}, r)
		return err
	}), []string{
		`{}`, `{"worker_id":"v"}`, `{"worker_id":"v","chunks":[` + strings.Repeat(`{},`, 60) + `{}]}`,
		`{"worker_id":"v","chunks":[{"stream":"stdout","offset":-1,"data":""}]}`,
	}},
	{"complete", taking(func(ctx context.Context, n *node, c scheduler.Caller, d lessor.Completion) error {
		return n.Complete(ctx, c, lessor.LeaseID{}, d)
	}), []string{
		`{}`, `{"worker_id":"v"}`, `{"worker_id":"v","status":"done"}`,
		`{"worker_id":"v","status":"failed","error":"LONG"}`,
		`{"worker_id":"v","status":"completed","question":{"text":"?"}}`, `{"worker_id":"v","status":"waiting"}`,
		`{"worker_id":"v","status":"waiting","question":{}}`,
		`{"worker_id":"v","status":"waiting","question":{"text":"LONG","choices":[""]}}`,
		`{"worker_id":"v","status":"waiting","question":{"text":"?","choices":[` + strings.Repeat(`"a",`,
			30) + `"a"]}}`,
	}},
	{"release", taking(func(ctx context.Context, n *node, c scheduler.Caller, r lessor.Release) error {
		return n.Release(ctx, c, lessor.LeaseID{}, r)
	}), []string{`{}`, `{"worker_id":"v","reason":"bored"}`, `{"worker_id":"v","delay_ms":-1}`, `{"worker_id":"v"}`}},
	{"cancelled", taking(func(ctx context.Context, n *node, c scheduler.Caller, w lessor.CancelWait) error {
		_, err := n.Cancelled(ctx, c, w)
		return err
	}), []string{`{}`, `{"worker_id":"v","wait_ms":-1}`}},
	{"talk", taking(func(ctx context.Context, n *node, c scheduler.Caller, a lessor.Answer) error {
		if a.QuestionID == nil {
			_, err := n.Message(ctx, c, lessor.JobID{}, lessor.MessageAsk{Text: a.Answer})
			return err
		}
		_, err := n.Answer(ctx, c, lessor.JobID{}, a)
		return err
	}), []string{
		`{}`, `{"answer":"LONG"}`, `{"answer":"x"}`, `{"question_id":"x"}`, `{"question_id":"x","answer":"y"}`,
	}},
	{"define", taking(func(ctx context.Context, n *node, c scheduler.Caller, e lessor.Envelope) error {
		_, _, err := n.PutDefinition(ctx, c, "vandal", e)
		return err
	}), envelopes()},
	{"manifest", taking(func(ctx context.Context, n *node, c scheduler.Caller, m lessor.Manifest) error {
		_, err := n.Apply(ctx, c, m)
		return err
	}), manifests()},
	{"list", taking(func(ctx context.Context, n *node, c scheduler.Caller, f lessor.JobFilter) error {
		_, _, err := n.Jobs(ctx, c, f)
		return err
	}), []string{
		`{}`, `{"Limit":1,"State":"lost"}`, `{"Limit":1,"Type":"LONG","Tag":"LONG"}`, `{"Limit":1,"Cursor":"x"}`,
		`{"Limit":1,"Tenant":"00000000-0000-4000-8000-000000000009"}`,
	}},
	{"runs", taking(func(ctx context.Context, n *node, c scheduler.Caller, f lessor.RunFilter) error {
		_, _, err := n.Runs(ctx, c, f)
		return err
	}), []string{`{}`, `{"Limit":1,"Status":"lost"}`, `{"Limit":1,"JobID":"LONG"}`, `{"Limit":1,"Trace":"x"}`}},
	{"ticks", taking(func(ctx context.Context, n *node, c scheduler.Caller, f struct {
		Count, Limit int
		Cursor       string
	},
	) error {
		if f.Count != 0 {
			_, err := n.NextTicks(ctx, c, "vandal", f.Count)
			return err
		}
		filter := lessor.TickFilter{From: 9, To: 8, Limit: f.Limit, Cursor: f.Cursor}
		if f.Cursor != "" {
			filter.To = 9
		}
		_, _, err := n.Ticks(ctx, c, "vandal", filter)
		return err
	}), []string{`{"Count":1000}`, `{"Limit":0}`, `{"Limit":1}`, `{"Limit":1,"Cursor":"x"}`}},
	{"lists", taking(func(ctx context.Context, n *node, c scheduler.Caller, cursor string) error {
		_, _, err := n.Leases(ctx, c, "", 1, cursor)
		if err == nil {
			return nil
		}
		if _, _, err := n.Locks(ctx, c, nil, 0, cursor); err == nil {
			return nil
		}
		_, _, err = n.Events(ctx, c, lessor.JobID{}, 1, cursor)
		return err
	}), []string{`"x"`, `"` + strings.Repeat("A", 44) + `"`, `"LONG"`}},
	{"revoke", taking(func(ctx context.Context, n *node, c scheduler.Caller, reason string) error {
		return n.Revoke(ctx, c, lessor.LeaseID{}, reason)
	}), []string{`"LONG"`, `"no such lease"`}},
	{"settings", taking(func(ctx context.Context, n *node, c scheduler.Caller, a struct {
		Weight, Cap, Units, Busy *int64
		Tenant, Class            *string
	},
	) error {
		set := func(v *int64) (ch lessor.Change[int64]) {
			if v != nil {
				ch = lessor.SetTo(*v)
			}
			return ch
		}
		if a.Units == nil && a.Busy == nil {
			_, err := n.SetTenant(ctx, c, tenant(1), lessor.TenantAsk{
				Weight: set(a.Weight), MaxConcurrency: set(a.Cap), TenantID: a.Tenant, Class: a.Class,
			})
			return err
		}
		_, err := n.SetCapacity(ctx, c, lessor.CapacityAsk{TotalUnits: set(a.Units), Busy: set(a.Busy)})
		return err
	}), []string{`{"Weight":0}`, `{"Cap":-1}`, `{"Tenant":"x"}`, `{"Class":"x"}`, `{"Units":-1}`, `{"Busy":11}`}},
}

// wrongEnvelope is a definition in which one field is wrong.
func wrongEnvelope(field string) string {
	return `{"jobId":"vandal","tenantId":"00000000-0000-4000-8000-000000000001",` +
		`"handlerId":"mail","lockKey":"vandal",` +
		`"timeoutSeconds":10,"schedule":{"type":"interval","seconds":60},` + field + `}`
}

func envelopes() (all []string) {
	for _, field := range []string{
		`"tenantId":"nobody"`, `"tenantId":"00000000-0000-0000-0000-000000000000"`,
		`"tenantId":"00000000-0000-4000-8000-000000000009"`, `"schedule":{"type":null}`,
		`"schedule":{"type":"sometimes"}`,
		`"schedule":{"type":"cron","seconds":1,"cron":null}`,
		`"schedule":{"type":"cron","cron":"x y z","seconds":null}`,
		`"schedule":{"type":"interval","cron":"* * * * *","seconds":1}`, `"timezone":"Mars/Base"`, `"overlap":"maybe"`,
		`"maxRuntimeSeconds":-1,"timeoutSeconds":null`, `"moduleId":"another"`, `"circuit":{"cooldownSeconds":0}`,
		`"payload":[]`, `"backoff":{"firstMs":-1}`,
	} {
		all = append(all, wrongEnvelope(field))
	}
	return append(all, `{}`, `{"jobId":"vandal"}`)
}

func manifests() (all []string) {
	for _, rest := range []string{
		`"jobs":[` + wrongEnvelope(`"overlap":"maybe"`) + `]`, `"tenantId":"nobody","jobs":[{}]`, `"moduleId":"m"`,
		`"jobs":[` + wrongEnvelope(`"paused":false`) + `,` + wrongEnvelope(`"paused":false`) + `]`,
		`"jobs":[` + wrongEnvelope(`"moduleId":"other"`) + `]`,
		`"jobs":[` + wrongEnvelope(`"tenantId":"00000000-0000-4000-8000-000000000002"`) + `]`,
		`"jobs":[` + strings.Repeat(`{},`, 1100) + `{}]`, `"tenantId":"00000000-0000-4000-8000-000000000009","jobs":[]`,
	} {
		all = append(all, `{"moduleId":"vandals","tenantId":"00000000-0000-4000-8000-000000000001",`+rest+`}`)
	}
	return append(all, `{}`)
}

// untouched checks that nothing of what was refused is there.
func (b *knowledge) untouched(spec *rules.Spec) {
	if spec.Lane.Type == "vandal" || spec.Lane.Definition == "vandal" {
		b.fail("P15", "job %v was refused and is there", spec.ID)
	}
}
