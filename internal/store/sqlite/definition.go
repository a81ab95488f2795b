package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

var (
	definitionColumns = row.Columns(row.Definition)
	selectDefinition  = "select " + definitionColumns + " from definition"
)

// Definitions implements scheduler.View.
func (v *view) Definitions(ctx context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	for _, id := range ids {
		d, err := find(v.conn, selectDefinition+" where id = ?", func(a *args) { a.Text(id) }, row.Definition)
		if err != nil {
			return nil, readFault(ctx, "read definitions", err)
		}
		if d != nil {
			ds[id] = d
		}
	}
	return ds, nil
}

// LockDefinitions implements scheduler.Tx.
func (t *tx) LockDefinitions(ctx context.Context, ids []string) (map[string]*rules.Definition, error) {
	return t.Definitions(ctx, ids)
}

// DueDefinitions implements scheduler.Tx.
func (t *tx) DueDefinitions(ctx context.Context, now lessor.Instant, limit int) ([]*rules.Definition, error) {
	w := &where{}
	w.and("due_at > 0", nil)
	w.and("due_at <= +?", func(a *args) { a.instant(now) })
	due, err := page(&t.view, selectDefinition, w, "due_at, id", limit, row.Pointer(row.Definition))
	return due, readFault(ctx, "read due definitions", err)
}

// NextTick implements scheduler.View.
func (v *view) NextTick(ctx context.Context) (lessor.Instant, error) {
	next, err := count(v.conn, "select min(due_at) from definition where due_at > 0")
	return lessor.Instant(next), readFault(ctx, "read the next tick", err)
}

// DefinitionList implements scheduler.View.
func (v *view) DefinitionList(ctx context.Context, q scheduler.DefinitionQuery) ([]*rules.Definition, error) {
	w := &where{}
	w.and("(created_at, id) < (+?, +?)", func(a *args) { bindPlace(a, q.After) })
	if q.Tenant != nil {
		w.and("tenant = ?", func(a *args) { a.ID(q.Tenant.UUID) })
	}
	if q.Module != "" {
		w.and("module <> '' and module = ?", func(a *args) { a.Text(q.Module) })
	}
	ds, err := page(v, selectDefinition, w, "created_at desc, id desc", q.Limit, row.Pointer(row.Definition))
	return ds, readFault(ctx, "list definitions", err)
}

// SaveDefinitions implements scheduler.Tx.
func (t *tx) SaveDefinitions(_ context.Context, ds []*rules.Definition) error {
	return t.do("save definitions", func() error {
		return t.w.definition.insert(len(ds), func(i int, c *row.Codec) { row.Definition(c, ds[i]) })
	})
}

// DeleteDefinitions implements scheduler.Tx.
func (t *tx) DeleteDefinitions(_ context.Context, ids []string) error {
	for _, text := range []string{"delete from definition where id = ?", dropCircuit} {
		if err := t.run("delete definitions", text, len(ids), func(i int, a *args) { a.Text(ids[i]) }); err != nil {
			return err
		}
	}
	return t.err
}
