package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	circuitColumns = "definition, tenant, state, failures, opened_at, retry_at, trial"
	dropCircuit    = "delete from circuit where definition = ?"

	// standColumns are those of a circuit that may have no row.
	standColumns = "definition.id, definition.tenant, state, circuit.failures, opened_at, retry_at, trial"
	readCircuit  = "select " + standColumns + " from definition left join circuit on circuit.definition = definition.id where definition.id = ?"

	// The two kinds of hindrances, without those that are both in the second.
	readHeld = "select " + standColumns + " from definition left join circuit on circuit.definition = definition.id" +
		" where paused or not enabled order by definition.id"
	readOpen = "select " + standColumns + " from circuit cross join definition on definition.id = circuit.definition" +
		" where state in ('open', 'halfOpen') and not (paused or not enabled) order by circuit.definition"
)

func bindCircuit(a *args, c *rules.Circuit) {
	a.text(c.Definition)
	a.id(c.Tenant.UUID)
	a.text(string(c.State))
	a.int(int64(c.Failures))
	a.instant(c.OpenedAt)
	a.instant(c.RetryAt)
	a.idOrNull(c.Trial.UUID)
}

func scanCircuit(r *row) *rules.Circuit {
	return &rules.Circuit{
		Definition: r.text(),
		Tenant:     lessor.TenantID{UUID: r.id()},
		State:      lessor.CircuitState(r.text()),
		Failures:   int(r.int()),
		OpenedAt:   r.instant(),
		RetryAt:    r.instant(),
		Trial:      lessor.LeaseID{UUID: r.id()},
	}
}

// LockCircuits implements scheduler.KernelTx: nobody else has locked any.
func (t *tx) LockCircuits(ctx context.Context, ids []string, _ bool) (map[string]*rules.Circuit, error) {
	cs := make(map[string]*rules.Circuit, len(ids))
	for _, id := range ids {
		err := query(t.conn, readCircuit, func(a *args) { a.text(id) }, func(r *row) error {
			cs[id] = scanCircuit(r)
			return nil
		})
		if err != nil {
			return nil, readFault(ctx, "read circuits", err)
		}
	}
	return cs, nil
}

// SaveCircuits implements scheduler.KernelTx.
func (t *tx) SaveCircuits(_ context.Context, cs []*rules.Circuit) error {
	return t.do("save circuits", func() error {
		for _, c := range cs {
			if err := t.saveCircuit(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tx) saveCircuit(c *rules.Circuit) error {
	if c.Idle() {
		return query(t.conn, dropCircuit, func(a *args) { a.text(c.Definition) }, nil)
	}
	return query(t.conn, "replace into circuit ("+circuitColumns+") values (?, ?, ?, ?, ?, ?, ?)",
		func(a *args) { bindCircuit(a, c) }, nil)
}

// Circuits implements scheduler.KernelView.
func (v *view) Circuits(ctx context.Context, q scheduler.CircuitQuery) (cs []*rules.Circuit, err error) {
	w := &where{}
	w.and("(opened_at, definition) < (+?, +?)", func(a *args) { bindPlace(a, q.After) })
	if q.Tenant != nil {
		w.and("tenant = ?", func(a *args) { a.id(q.Tenant.UUID) })
	}
	err = v.page("select "+circuitColumns+" from circuit", w, "opened_at desc, definition desc", q.Limit, func(r *row) { cs = append(cs, scanCircuit(r)) })
	return cs, readFault(ctx, "list circuits", err)
}

// EachHindrance implements scheduler.KernelView.
func (v *view) EachHindrance(ctx context.Context, fn func(scheduler.Hindrance) error) error {
	for _, kind := range []struct {
		text string
		held bool
	}{{readHeld, true}, {readOpen, false}} {
		err := query(v.conn, kind.text, nil, func(r *row) error {
			c := scanCircuit(r)
			return fn(scheduler.Hindrance{Definition: c.Definition, Tenant: c.Tenant, Held: kind.held, Circuit: *c})
		})
		if err != nil {
			return readFault(ctx, "read hindrances", err)
		}
	}
	return nil
}
