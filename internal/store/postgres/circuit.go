package postgres

import (
	"context"
	"slices"
	"strings"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

const (
	circuitColumns = "definition, tenant, state, failures, opened_at, retry_at, trial"
	circuitTypes   = "tutiiiu"
	selectCircuit  = "select " + circuitColumns + " from circuit"
)

var (
	addCircuits = wire.SQL("insert into circuit (definition, tenant, state, failures, opened_at, retry_at)" +
		" select unnest($1::text[]), unnest($2::uuid[]), '', 0, 0, 0 on conflict do nothing")
	// lockCircuits waits for the nodes that change one of them, in the order of ids; seizeCircuits does not wait.
	lockCircuits  = wire.SQL(selectCircuit + " where definition = any($1::text[]) order by definition for update")
	seizeCircuits = wire.SQL(selectCircuit + " where definition = any($1::text[]) order by definition for update skip locked")
	saveCircuits  = wire.SQL("insert into circuit (" + circuitColumns + ") " + wire.Unnest(circuitTypes, circuitColumns) +
		" on conflict (definition) do update set " + wire.Excluded(circuitColumns))
	dropCircuits = wire.SQL("delete from circuit where definition = any($1::text[])")
	listCircuits = variants(selectCircuit+" where (state not in ('', 'closed') or failures <> 0) and (opened_at, definition) < ($2::bigint, $3::text)",
		" order by opened_at desc, definition desc limit $4::bigint", filter{"tenant = ", "uuid"})
	// readBlocks reads the definitions that are held, and the others whose circuit is not closed.
	readBlocks = wire.SQL("select true, " + wire.Of("c", circuitColumns) + " from definition d join circuit c on c.definition = d.id" +
		" where d.paused or not d.enabled union all select false, " + wire.Of("c", circuitColumns) + " from circuit c" +
		" join definition d on d.id = c.definition where c.state not in ('', 'closed') and not d.paused and d.enabled")
)

func bindCircuit(r *wire.Rows, c *rules.Circuit) {
	r.Text(c.Definition)
	r.ID(c.Tenant.UUID)
	r.Text(string(c.State))
	r.Int(int64(c.Failures))
	r.Instant(c.OpenedAt)
	r.Instant(c.RetryAt)
	r.IDOrNull(c.Trial.UUID)
}

func readCircuit(r *wire.Row) *rules.Circuit {
	return &rules.Circuit{
		Definition: r.Text(),
		Tenant:     lessor.TenantID{UUID: r.ID()},
		State:      lessor.CircuitState(r.Text()),
		Failures:   int(r.Int()),
		OpenedAt:   r.Instant(),
		RetryAt:    r.Instant(),
		Trial:      lessor.LeaseID{UUID: r.ID()},
	}
}

// LockCircuits implements scheduler.KernelTx.
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
		c := readCircuit(r)
		cs[c.Definition] = c
		return nil
	}}, wire.Texts(ids))
	t.look()
	return cs, t.send("lock circuits")
}

// SaveCircuits implements scheduler.KernelTx.
func (t *tx) SaveCircuits(_ context.Context, cs []*rules.Circuit) error {
	if len(cs) == 0 {
		return t.err
	}
	r := t.scratch.Reset()
	for _, c := range slices.SortedFunc(slices.Values(cs), func(a, b *rules.Circuit) int { return strings.Compare(a.Definition, b.Definition) }) {
		r.Next()
		bindCircuit(r, c)
	}
	return t.write("save circuits", wire.Step{Stmt: saveCircuits}, r.Params()...)
}

// Circuits implements scheduler.KernelView.
func (v *view) Circuits(_ context.Context, q scheduler.CircuitQuery) (cs []*rules.Circuit, err error) {
	at, name := placeOf(q.After)
	err = v.page("list circuits", listCircuits, [][]byte{wire.IDOrNil(q.Tenant)},
		func(r *wire.Row) { cs = append(cs, readCircuit(r)) }, at, name, wire.Limit(q.Limit))
	return cs, err
}

// EachBlock implements scheduler.KernelView.
func (v *view) EachBlock(_ context.Context, fn func(scheduler.Block) error) error {
	return v.query("read blocks", readBlocks, func(r *wire.Row) error {
		paused, c := r.Flag(), readCircuit(r)
		return fn(scheduler.Block{Definition: c.Definition, Tenant: c.Tenant, Paused: paused, Circuit: *c})
	})
}
