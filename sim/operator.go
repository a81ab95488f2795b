package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// operator changes what others depend on: definitions, tenants, capacity, schemas.
type operator struct {
	*client
	applied []lessor.Envelope // by the last manifest
}

// definitions is how many definitions there may be.
const definitions = 6

func (w *world) operate(t *task) {
	o := &operator{client: w.client(t, scheduler.Caller{Actor: "operator"})}
	acts := []func(){
		o.define, o.define, o.definition, o.definition, o.definition, o.definition, o.tenant, o.tenant, o.capacity,
		o.drain, o.handler, o.revoke, o.manifest, o.recover, o.resume, o.lists, o.lists, o.alerts,
		o.explain, o.explain, o.session, o.browseLeases,
	}
	for !w.quiet {
		acts[o.random.IntN(len(acts))]()
		o.rest(time.Duration(o.random.ExpFloat64() * float64(8*time.Second)))
	}
}

func (o *operator) id() string { return fmt.Sprintf("definition-%d", o.random.IntN(definitions)) }

// envelope draws a definition.
func (o *operator) envelope(id string) lessor.Envelope {
	e := lessor.Envelope{
		JobID: &id, LockKey: new("lock-" + id), HandlerID: &jobTypes[o.random.IntN(len(jobTypes))],
		TimeoutSeconds: new(int64(10 + o.random.IntN(100))),
		Schedule: &lessor.ScheduleAsk{
			Type:    new(lessor.ScheduleInterval),
			Seconds: new(int64(20 + o.random.IntN(200))),
		},
		Circuit: &lessor.CircuitAsk{Failures: new(int64(1 + o.random.IntN(3))), CooldownSeconds: new(int64(20))},
	}
	if o.chance(40) {
		cron := []string{"* * * * *", "*/5 * * * *", "H * * * *", "0 12 * * *"}[o.random.IntN(4)]
		e.Schedule = &lessor.ScheduleAsk{Type: new(lessor.ScheduleCron), Cron: &cron}
		if o.chance(30) {
			e.Timezone = new("Europe/Berlin")
		}
	}
	if o.chance(50) {
		e.Overlap = new([]string{"skip", "queueOne", "allow", "cancelPrevious"}[o.random.IntN(4)])
	}
	if o.chance(50) {
		e.CatchUp = new([]string{"latest", "none", "all"}[o.random.IntN(3)])
		e.CatchUpWindowSeconds = new(int64(max(0, o.random.IntN(700)-70)))
	}
	if o.chance(20) {
		e.JitterSeconds = new([]int64{1, 10, 90, 400}[o.random.IntN(4)])
	}
	if o.chance(10) {
		e.IsEnabled = new(false)
	}
	return e
}

func (o *operator) define() {
	id := o.id()
	e := o.envelope(id)
	e.TenantID = new(tenant(1 + int(id[len(id)-1])%o.world.plan.Tenants).String())
	as := o.conditional()
	_ = o.do("define", func(ctx context.Context, n *node) error {
		_, _, err := n.PutDefinition(ctx, as, id, e)
		return err
	})
}

// conditional is the operator, who now and then changes only what is there, or what is not.
func (o *operator) conditional() scheduler.Caller {
	c := o.caller
	switch o.random.IntN(8) {
	case 0:
		c.IfMatch = `"*"`
	case 1:
		c.IfMatch = `W/"old", "older"`
	case 2:
		c.IfNoneMatch = "*"
	}
	return c
}

// definition does something to a definition that may be there.
func (o *operator) definition() {
	id, now, paused := o.id(), o.world.clock(), o.chance(50)
	from := now.Add(-time.Duration(1+o.random.IntN(5)) * 5 * time.Minute)
	verbs := []struct {
		name string
		do   func(ctx context.Context, n *node) error
	}{
		{"pause", func(ctx context.Context, n *node) error {
			_, err := n.SetPaused(ctx, o.caller, id, paused)
			return err
		}},
		{"trigger", func(ctx context.Context, n *node) error {
			_, err := n.Trigger(ctx, o.caller, id, nil)
			return err
		}},
		{"backfill", func(ctx context.Context, n *node) error {
			_, err := n.Backfill(ctx, o.caller, id, from, now.Add(time.Duration(o.random.IntN(8)-6)*time.Minute))
			return err
		}},
		{"reset", func(ctx context.Context, n *node) error {
			_, err := n.ResetCircuit(ctx, o.caller, id)
			return err
		}},
		{"delete", func(ctx context.Context, n *node) error { return n.DeleteDefinition(ctx, o.caller, id) }},
	}
	v := verbs[o.random.IntN(len(verbs))]
	_ = o.do(v.name, v.do)
}

// tenant changes the policy of a tenant or of one of its classes.
func (o *operator) tenant() {
	id := tenant(o.random.IntN(o.world.plan.Tenants + 1))
	var ask lessor.TenantAsk
	if o.chance(50) {
		ask.Weight = lessor.SetTo(int64(1 + o.random.IntN(5)))
	}
	if o.chance(50) {
		ask.MaxConcurrency = lessor.SetTo(int64(1 + o.random.IntN(6)))
	}
	if o.chance(30) {
		ask.Paused = lessor.SetTo(o.chance(40))
		ask.Name = lessor.SetTo("a name")
	}
	if o.chance(20) {
		ask = lessor.TenantAsk{
			Weight: lessor.Change[int64]{Reset: true}, MaxConcurrency: lessor.Change[int64]{Reset: true},
			Paused: lessor.Change[bool]{Reset: true},
		}
	}
	class := ""
	if o.chance(50) {
		class = classes[o.random.IntN(len(classes))]
	}
	as := o.conditional()
	_ = o.do("tenant", func(ctx context.Context, n *node) (err error) {
		if class == "" {
			_, err = n.SetTenant(ctx, as, id, ask)
		} else {
			_, err = n.SetClass(ctx, as, id, class, ask)
		}
		return err
	})
}

func (o *operator) capacity() {
	var ask lessor.CapacityAsk
	if o.chance(50) {
		ask.TotalUnits = lessor.SetTo(int64(6 + o.random.IntN(60)))
	}
	if o.chance(50) {
		ask.Busy = lessor.SetTo(int64(o.random.IntN(11)))
	}
	if o.chance(70) {
		ask.ExpiresInS = new(int64(1 + o.random.IntN(120)))
	}
	if o.chance(30) {
		ask = lessor.CapacityAsk{
			TotalUnits: lessor.Change[int64]{Reset: true}, Busy: lessor.Change[int64]{Reset: true},
		}
	}
	_ = o.do("capacity", func(ctx context.Context, n *node) error {
		_, err := n.SetCapacity(ctx, o.caller, ask)
		return err
	})
}

func (o *operator) drain() {
	draining := o.chance(30)
	_ = o.do("drain", func(ctx context.Context, n *node) error {
		_, err := n.SetDraining(ctx, o.caller, draining)
		return err
	})
}

// handler sets a schema that some payloads break.
func (o *operator) handler() {
	schema := json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"n":{"maximum":%d}}}`, o.random.IntN(4000)))
	switch {
	case o.chance(60):
		schema = json.RawMessage(`{}`)
	case o.chance(20):
		schema = json.RawMessage(`{"required":["n"]}`) // which jobs of definitions do not have
	}
	typ := jobTypes[o.random.IntN(len(jobTypes))]
	_ = o.do("handler", func(ctx context.Context, n *node) error {
		_, _, err := n.SetHandler(ctx, o.caller, typ, schema)
		return err
	})
}

// revoke takes a lease away from its worker.
func (o *operator) revoke() {
	page, err := call(o.client, "leases", func(ctx context.Context, n *node) ([]lessor.Lease, error) {
		page, _, err := n.Leases(ctx, o.caller, "", 20, "")
		return page, err
	})
	if err != nil || len(page) == 0 {
		return
	}
	l, sent := page[o.random.IntN(len(page))], o.world.now
	o.world.known.tried[act{l.ID.UUID, rules.ReasonRevoked}] = true
	err = o.do("revoke", func(ctx context.Context, n *node) error { return n.Revoke(ctx, o.caller, l.ID, "sim") })
	if err == nil {
		o.world.known.over(o.world.known.leases[l.ID], sent)
	}
}

// manifest applies a module with some definitions of its own.
func (o *operator) manifest() {
	m := lessor.Manifest{
		ModuleID: new("module"), TenantID: new(tenant(1).String()), Prune: new(o.chance(50)), DryRun: new(o.chance(20)),
	}
	for i := range o.random.IntN(4) {
		m.Jobs = append(m.Jobs, o.envelope(fmt.Sprintf("module-%d", i)))
	}
	switch o.random.IntN(5) {
	case 0:
		m.ModuleID = new("another") // which may not change what is there
	case 1:
		m.Jobs = append(m.Jobs, o.envelope(o.id())) // which may belong to nobody
	case 2:
		m.Jobs = o.applied
	}
	o.applied = m.Jobs
	_ = o.do("manifest", func(ctx context.Context, n *node) error {
		_, err := n.Apply(ctx, o.caller, m)
		return err
	})
}
