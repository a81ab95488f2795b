package postgres

import (
	"context"
	"slices"
	"strings"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	circuitColumns = "definition, tenant, state, failures, opened_at, retry_at, trial"
	circuitTypes   = "tutiiiu"
	selectCircuit  = "select " + circuitColumns + " from circuit"
)

var (
	addCircuits = sql("insert into circuit (definition, tenant, state, failures, opened_at, retry_at)" +
		" select unnest($1::text[]), unnest($2::uuid[]), '', 0, 0, 0 on conflict do nothing")
	// lockCircuits waits for the nodes that change one of them, in the order of ids; seizeCircuits does not wait.
	lockCircuits  = sql(selectCircuit + " where definition = any($1::text[]) order by definition for update")
	seizeCircuits = sql(selectCircuit + " where definition = any($1::text[]) order by definition for update skip locked")
	saveCircuits  = sql("insert into circuit (" + circuitColumns + ") " + unnestAs(circuitTypes, circuitColumns) +
		" on conflict (definition) do update set " + excluded(circuitColumns))
	dropCircuits = sql("delete from circuit where definition = any($1::text[])")
	listCircuits = variants(selectCircuit+" where (state not in ('', 'closed') or failures <> 0) and (opened_at, definition) < ($2::bigint, $3::text)",
		" order by opened_at desc, definition desc limit $4::bigint", filter{"tenant = ", "uuid"})
	// readBlocks reads the definitions that are held, and the others whose circuit is not closed.
	readBlocks = sql("select true, " + of("c", circuitColumns) + " from definition d join circuit c on c.definition = d.id" +
		" where d.paused or not d.enabled union all select false, " + of("c", circuitColumns) + " from circuit c" +
		" join definition d on d.id = c.definition where c.state not in ('', 'closed') and not d.paused and d.enabled")
)

func bindCircuit(r *rows, c *rules.Circuit) {
	r.text(c.Definition)
	r.id(c.Tenant.UUID)
	r.text(string(c.State))
	r.int(int64(c.Failures))
	r.instant(c.OpenedAt)
	r.instant(c.RetryAt)
	r.idOrNull(c.Trial.UUID)
}

func readCircuit(r *row) *rules.Circuit {
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
	t.add("lock circuits", step{stmt: stmt, each: func(r *row) error {
		c := readCircuit(r)
		cs[c.Definition] = c
		return nil
	}}, textsOf(&t.view, ids))
	t.look()
	return cs, t.send("lock circuits")
}

// SaveCircuits implements scheduler.KernelTx.
func (t *tx) SaveCircuits(_ context.Context, cs []*rules.Circuit) error {
	if len(cs) == 0 {
		return t.err
	}
	r := t.scratch.reset()
	for _, c := range slices.SortedFunc(slices.Values(cs), func(a, b *rules.Circuit) int { return strings.Compare(a.Definition, b.Definition) }) {
		r.row()
		bindCircuit(r, c)
	}
	return t.write("save circuits", step{stmt: saveCircuits}, r.params()...)
}

// Circuits implements scheduler.KernelView.
func (v *view) Circuits(_ context.Context, q scheduler.CircuitQuery) (cs []*rules.Circuit, err error) {
	at, name := placeOf(q.After)
	err = v.page("list circuits", listCircuits, [][]byte{idOrNil(q.Tenant)},
		func(r *row) { cs = append(cs, readCircuit(r)) }, at, name, limitOf(q.Limit))
	return cs, err
}

// EachBlock implements scheduler.KernelView.
func (v *view) EachBlock(_ context.Context, fn func(scheduler.Block) error) error {
	return v.query("read blocks", readBlocks, func(r *row) error {
		held, c := r.flag(), readCircuit(r)
		return fn(scheduler.Block{Definition: c.Definition, Tenant: c.Tenant, Paused: held, Circuit: *c})
	})
}
