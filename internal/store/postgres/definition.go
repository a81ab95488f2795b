package postgres

import (
	"context"
	"slices"
	"strings"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	definitionColumns = row.Columns(row.Definition)
	selectDefinition  = "select " + definitionColumns + " from definition"

	readDefinitions = wire.SQL(selectDefinition + " where id = any($1::text[])")
	// lockDefinitions waits for the nodes that change one of them. All lock in the order of ids.
	lockDefinitions = wire.SQL(selectDefinition + " where id = any($1::text[]) order by id for update")
	// lockDueDefinitions skips definitions that another node has locked.
	lockDueDefinitions = wire.SQL(selectDefinition + " where due_at > 0 and due_at <= $1::bigint order by due_at, id" +
		" limit $2::bigint" +
		" for update skip locked")
	nextTick        = wire.SQL("select min(due_at) from definition where due_at > 0")
	listDefinitions = variants(selectDefinition+" where (created_at, id) < ($3::bigint, $4::text)",
		" order by created_at desc, id desc limit $5::bigint",
		filter{"tenant = ", "uuid"}, filter{"module <> '' and module = ", "text"})
	insertDefinitions = wire.Plural(wire.Exactly("insert into definition ("+definitionColumns+") {rows}"+
		" on conflict do nothing", len(row.Kinds(row.Definition))), row.Kinds(row.Definition), definitionColumns)
	saveDefinitions = wire.Plural("insert into definition ("+definitionColumns+") {rows} on conflict (id)"+
		" do update set "+
		wire.Excluded(definitionColumns), row.Kinds(row.Definition), definitionColumns)
	dropDefinitions = wire.SQL("delete from definition where id = any($1::text[])")
)

// Definitions implements scheduler.View.
func (v *view) Definitions(_ context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	if len(ids) == 0 || v.err != nil {
		return ds, v.err
	}
	err := v.query("read definitions", readDefinitions, func(r *wire.Row) error {
		d := &rules.Definition{}
		row.Definition(decode(r), d)
		ds[d.ID] = d
		return nil
	}, wire.Texts(ids))
	return ds, err
}

// LockDefinitions implements scheduler.Tx. It remembers those that are not there: see SaveDefinitions.
func (t *tx) LockDefinitions(_ context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	if len(ids) == 0 || t.err != nil {
		return ds, t.err
	}
	t.add("lock definitions", wire.Step{Stmt: lockDefinitions, Each: func(r *wire.Row) error {
		d := &rules.Definition{}
		row.Definition(decode(r), d)
		ds[d.ID] = d
		return nil
	}}, wire.Texts(ids))
	t.readClock()
	if err := t.send("lock definitions"); err != nil {
		return nil, err
	}
	if t.missing == nil {
		t.missing = map[string]bool{}
	}
	for _, id := range ids {
		if ds[id] == nil {
			t.missing[id] = true
		}
	}
	return ds, nil
}

// DueDefinitions implements scheduler.Tx.
func (t *tx) DueDefinitions(_ context.Context, now lessor.Instant, limit int) (due []*rules.Definition, err error) {
	if limit <= 0 || t.err != nil {
		return nil, t.err
	}
	step := wire.Step{Stmt: lockDueDefinitions, Each: collect(&due, row.Pointer(row.Definition))}
	t.add("lock due definitions", step, wire.Instant(now), wire.Limit(limit))
	t.readClock()
	return due, t.send("lock due definitions")
}

// NextTick implements scheduler.View.
func (v *view) NextTick(context.Context) (next lessor.Instant, err error) {
	err = v.query("read next tick", nextTick, func(r *wire.Row) error {
		next = r.Instant()
		return nil
	})
	return next, err
}

// DefinitionList implements scheduler.View.
func (v *view) DefinitionList(_ context.Context, q scheduler.DefinitionQuery) ([]*rules.Definition, error) {
	at, name := placeOf(q.After)
	return page(v, "list definitions", listDefinitions, [][]byte{wire.IDOrNil(q.Tenant), wire.TextOrNil(q.Module)},
		row.Pointer(row.Definition), at, name, wire.Limit(q.Limit))
}

// SaveDefinitions implements scheduler.Tx. One that LockDefinitions did not find, and that another node has made since,
// is scheduler.ErrAgain: the caller decided without knowing of it. Each definition gets its circuit.
func (t *tx) SaveDefinitions(_ context.Context, ds []*rules.Definition) error {
	sorted := slices.SortedFunc(slices.Values(ds), func(a, b *rules.Definition) int {
		return strings.Compare(a.ID, b.ID)
	})
	var fresh, known []*rules.Definition
	for _, d := range sorted {
		if t.missing[d.ID] {
			fresh = append(fresh, d)
			delete(t.missing, d.ID)
		} else {
			known = append(known, d)
		}
	}
	if len(fresh) > 0 {
		s := wire.Step{Stmt: insertDefinitions, Rows: t.definitionRows(fresh), Guard: scheduler.ErrAgain}
		_ = t.write("insert definitions", s, wire.Int8(int64(len(fresh)))) // kept in t.err
	}
	if len(known) > 0 {
		_ = t.write("save definitions", wire.Step{Stmt: saveDefinitions, Rows: t.definitionRows(known)})
	}
	if len(sorted) > 0 {
		_ = t.write("add circuits", wire.Step{Stmt: addCircuits}, t.definitionRows(sorted).Params()[:2]...)
	}
	return t.err
}

func (t *tx) definitionRows(ds []*rules.Definition) *wire.Rows {
	return rowsOf(&t.view, ds, func(c *row.Codec, d **rules.Definition) { row.Definition(c, *d) })
}

// DeleteDefinitions implements scheduler.Tx.
func (t *tx) DeleteDefinitions(_ context.Context, ids []string) error {
	if len(ids) == 0 {
		return t.err
	}
	_ = t.write("delete definitions", wire.Step{Stmt: dropDefinitions}, wire.Texts(ids)) // kept in t.err
	return t.write("delete circuits", wire.Step{Stmt: dropCircuits}, wire.Texts(ids))
}
