package postgres

import (
	"context"
	"slices"
	"strings"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	circuitColumns = row.Columns(row.Circuit)
	selectCircuit  = "select " + circuitColumns + " from circuit"
	addCircuits    = wire.SQL("insert into circuit (definition, tenant, state, failures, opened_at, retry_at)" +
		" select unnest($1::text[]), unnest($2::uuid[]), '', 0, 0, 0 on conflict do nothing")
	// lockCircuits waits for the nodes that change one of them, in the order of ids; seizeCircuits does not wait.
	lockCircuits  = wire.SQL(selectCircuit + " where definition = any($1::text[]) order by definition for update")
	seizeCircuits = wire.SQL(selectCircuit + " where definition = any($1::text[]) order by definition" +
		" for update skip locked")
	saveCircuits = upsert("circuit", "definition", row.Circuit)
	dropCircuits = wire.SQL("delete from circuit where definition = any($1::text[])")
	listCircuits = variants(selectCircuit+" where (state not in ('', 'closed') or failures <> 0)"+
		" and (opened_at, definition) < ($2::bigint, $3::text)",
		" order by opened_at desc, definition desc limit $4::bigint", filter{"tenant = ", "uuid"})
	// readBlocks reads the definitions that are held, and the others whose circuit is not closed.
	readBlocks = wire.SQL("select true, " + row.Of("c", circuitColumns) + " from definition d" +
		" join circuit c on c.definition = d.id" +
		" where d.paused or not d.enabled union all select false, " + row.Of("c", circuitColumns) + " from circuit c" +
		" join definition d on d.id = c.definition where c.state not in ('', 'closed') and not d.paused and d.enabled")
)

// LockCircuits implements scheduler.Tx.
func (t *tx) LockCircuits(_ context.Context, ids []string, wait bool) (map[string]*rules.Circuit, error) {
	cs := make(map[string]*rules.Circuit, len(ids))
	if len(ids) == 0 || t.err != nil {
		return cs, t.err
	}
	stmt := seizeCircuits
	if wait {
		stmt = lockCircuits
	}
	t.add("lock circuits", wire.Step{Stmt: stmt, Each: func(r *wire.Row) error {
		c := &rules.Circuit{}
		row.Circuit(decode(r), c)
		cs[c.Definition] = c
		return nil
	}}, wire.Texts(ids))
	t.readClock()
	return cs, t.send("lock circuits")
}

// SaveCircuits implements scheduler.Tx.
func (t *tx) SaveCircuits(_ context.Context, cs []*rules.Circuit) error {
	sorted := slices.SortedFunc(slices.Values(cs), func(a, b *rules.Circuit) int {
		return strings.Compare(a.Definition, b.Definition)
	})
	return saveArrays(t, "save circuits", saveCircuits, sorted, func(c *row.Codec, k **rules.Circuit) {
		row.Circuit(c, *k)
	})
}

// Circuits implements scheduler.View.
func (v *view) Circuits(_ context.Context, q scheduler.CircuitQuery) ([]*rules.Circuit, error) {
	at, name := placeOf(q.After)
	return page(v, "list circuits", listCircuits, [][]byte{wire.IDOrNil(q.Tenant)}, row.Pointer(row.Circuit), at, name,
		wire.Limit(q.Limit))
}

// EachBlock implements scheduler.View.
func (v *view) EachBlock(_ context.Context, fn func(scheduler.Block) error) error {
	return v.query("read blocks", readBlocks, func(r *wire.Row) error {
		paused, c := r.Flag(), rules.Circuit{}
		row.Circuit(decode(r), &c)
		return fn(scheduler.Block{Definition: c.Definition, Tenant: c.Tenant, Paused: paused, Circuit: c})
	})
}
