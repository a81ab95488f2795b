package sqlite

import (
	"context"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

const dropCircuit = "delete from circuit where definition = ?"

var (
	circuitColumns = row.Columns(row.Circuit)
	saveCircuit    = insertOne("replace into circuit", circuitColumns)

	// standingColumns are the columns of a circuit, and those of its definition, which exist even if the circuit has no
	// row.
	standingColumns = row.Of("circuit", circuitColumns) + ", definition.id, definition.tenant"
	standingTables  = " from definition left join circuit on circuit.definition = definition.id"
	readCircuit     = "select " + standingColumns + standingTables + " where definition.id = ?"

	// The two kinds of blocked definitions; those that are both are in the first.
	readPaused = "select " + standingColumns + standingTables + " where paused or not enabled order by definition.id"
	readOpen   = "select " + standingColumns + " from circuit" +
		" cross join definition on definition.id = circuit.definition" +
		" where state in ('open', 'halfOpen') and not (paused or not enabled) order by circuit.definition"
)

// standingCircuit is the circuit of a definition: the zero one, if it has no row.
func standingCircuit(c *row.Codec, k *rules.Circuit) {
	row.Circuit(c, k)
	row.Text(c, "id", &k.Definition)
	row.ID(c, "tenant", &k.Tenant.UUID)
}

// LockCircuits implements scheduler.Tx. There is nothing to lock: this is the only writer.
func (t *tx) LockCircuits(ctx context.Context, ids []string, _ bool) (map[string]*rules.Circuit, error) {
	cs := make(map[string]*rules.Circuit, len(ids))
	for _, id := range ids {
		c, err := find(t.conn, readCircuit, func(a *args) { a.Text(id) }, standingCircuit)
		if err != nil {
			return nil, readFault(ctx, "read circuits", err)
		}
		if c != nil {
			cs[id] = c
		}
	}
	return cs, nil
}

// SaveCircuits implements scheduler.Tx. An idle circuit has no row.
func (t *tx) SaveCircuits(_ context.Context, cs []*rules.Circuit) error {
	for _, c := range cs {
		text, bind := saveCircuit, func(a *args) { row.Circuit(row.Write(a), c) }
		if c.Idle() {
			text, bind = dropCircuit, func(a *args) { a.Text(c.Definition) }
		}
		if err := t.runOnce("save circuits", text, bind); err != nil {
			return err
		}
	}
	return t.err
}

// Circuits implements scheduler.View.
func (v *view) Circuits(ctx context.Context, q scheduler.CircuitQuery) ([]*rules.Circuit, error) {
	w := &where{}
	w.and("(opened_at, definition) < (+?, +?)", func(a *args) { bindPlace(a, q.After) })
	if q.Tenant != nil {
		w.and("tenant = ?", func(a *args) { a.ID(q.Tenant.UUID) })
	}
	cs, err := page(v, "select "+circuitColumns+" from circuit", w, "opened_at desc, definition desc", q.Limit,
		row.Pointer(row.Circuit))
	return cs, readFault(ctx, "list circuits", err)
}

// EachBlock implements scheduler.View.
func (v *view) EachBlock(ctx context.Context, fn func(scheduler.Block) error) error {
	for _, text := range []string{readPaused, readOpen} {
		err := query(v.conn, text, nil, func(r *result) error {
			var c rules.Circuit
			standingCircuit(r.codec, &c)
			return fn(scheduler.Block{
				Definition: c.Definition, Tenant: c.Tenant, Paused: text == readPaused, Circuit: c,
			})
		})
		if err != nil {
			return readFault(ctx, "read blocks", err)
		}
	}
	return nil
}
