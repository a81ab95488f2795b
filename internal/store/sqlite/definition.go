package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	definitionColumns = "id, tenant, module, schedule_type, cron, every_s, zone, handler, lock_key, class, priority, units, max_attempts," +
		" timeout_ms, backoff_first_ms, backoff_max_ms, enabled, overlap, catch_up, catch_up_window_ms, jitter_ms, failures, cooldown_ms," +
		" paused, anchor, next_tick, due_at, created_at, updated_at, payload"
	selectDefinition = "select " + definitionColumns + " from definition"
)

func bindDefinition(a *args, d *rules.Definition) {
	a.text(d.ID)
	a.id(d.Tenant.UUID)
	a.text(d.Module)
	a.text(d.Schedule.Type)
	a.text(d.Schedule.Cron)
	a.int(d.Schedule.Seconds)
	a.text(d.Zone)
	a.text(d.Handler)
	a.text(d.LockKey)
	a.text(d.Class)
	a.int(int64(d.Priority))
	a.int(int64(d.Units))
	a.int(int64(d.MaxAttempts))
	a.millis(d.Timeout)
	a.millis(d.BackoffFirst)
	a.millis(d.BackoffMax)
	a.flag(d.Enabled)
	a.text(string(d.Overlap))
	a.text(string(d.CatchUp))
	a.millis(d.CatchUpWindow)
	a.millis(d.Jitter)
	a.int(int64(d.Failures))
	a.millis(d.Cooldown)
	a.flag(d.Paused)
	a.instant(d.Anchor)
	a.instant(d.NextTick)
	a.instant(d.DueAt)
	a.instant(d.CreatedAt)
	a.instant(d.UpdatedAt)
	a.blobOrNull(d.Payload)
}

func readDefinition(r *row) *rules.Definition {
	return &rules.Definition{
		ID:            r.text(),
		Tenant:        lessor.TenantID{UUID: r.id()},
		Module:        r.text(),
		Schedule:      lessor.Schedule{Type: r.text(), Cron: r.text(), Seconds: r.int()},
		Zone:          r.text(),
		Handler:       r.text(),
		LockKey:       r.text(),
		Class:         r.text(),
		Priority:      lessor.Priority(r.int()),
		Units:         int(r.int()),
		MaxAttempts:   int(r.int()),
		Timeout:       r.millis(),
		BackoffFirst:  r.millis(),
		BackoffMax:    r.millis(),
		Enabled:       r.flag(),
		Overlap:       lessor.Overlap(r.text()),
		CatchUp:       lessor.CatchUp(r.text()),
		CatchUpWindow: r.millis(),
		Jitter:        r.millis(),
		Failures:      int(r.int()),
		Cooldown:      r.millis(),
		Paused:        r.flag(),
		Anchor:        r.instant(),
		NextTick:      r.instant(),
		DueAt:         r.instant(),
		CreatedAt:     r.instant(),
		UpdatedAt:     r.instant(),
		Payload:       r.blob(),
	}
}

// Definitions implements scheduler.KernelView.
func (v *view) Definitions(ctx context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	for _, id := range ids {
		err := query(v.conn, selectDefinition+" where id = ?", func(a *args) { a.text(id) }, func(r *row) error {
			ds[id] = readDefinition(r)
			return nil
		})
		if err != nil {
			return nil, readFault(ctx, "read definitions", err)
		}
	}
	return ds, nil
}

// LockDefinitions implements scheduler.KernelTx.
func (t *tx) LockDefinitions(ctx context.Context, ids []string) (map[string]*rules.Definition, error) {
	return t.Definitions(ctx, ids)
}

// DueDefinitions implements scheduler.KernelTx.
func (t *tx) DueDefinitions(ctx context.Context, now lessor.Instant, limit int) (due []*rules.Definition, err error) {
	w := &where{}
	w.and("due_at > 0", nil)
	w.and("due_at <= +?", func(a *args) { a.instant(now) })
	err = t.page(selectDefinition, w, "due_at, id", limit, func(r *row) { due = append(due, readDefinition(r)) })
	return due, readFault(ctx, "read due definitions", err)
}

// NextTick implements scheduler.KernelView.
func (v *view) NextTick(ctx context.Context) (next lessor.Instant, err error) {
	err = query(v.conn, "select min(due_at) from definition where due_at > 0", nil, func(r *row) error {
		next = r.instant()
		return nil
	})
	return next, readFault(ctx, "read the next tick", err)
}

// DefinitionList implements scheduler.KernelView.
func (v *view) DefinitionList(ctx context.Context, q scheduler.DefinitionQuery) (ds []*rules.Definition, err error) {
	w := &where{}
	w.and("(created_at, id) < (+?, +?)", func(a *args) { bindPlace(a, q.After) })
	if q.Tenant != nil {
		w.and("tenant = ?", func(a *args) { a.id(q.Tenant.UUID) })
	}
	if q.Module != "" {
		w.and("module <> '' and module = ?", func(a *args) { a.text(q.Module) })
	}
	err = v.page(selectDefinition, w, "created_at desc, id desc", q.Limit, func(r *row) { ds = append(ds, readDefinition(r)) })
	return ds, readFault(ctx, "list definitions", err)
}

// SaveDefinitions implements scheduler.KernelTx.
func (t *tx) SaveDefinitions(_ context.Context, ds []*rules.Definition) error {
	return t.do("save definitions", func() error {
		return t.w.definition.insert(len(ds), func(i int, a *args) { bindDefinition(a, ds[i]) })
	})
}

// DeleteDefinitions implements scheduler.KernelTx.
func (t *tx) DeleteDefinitions(_ context.Context, ids []string) error {
	return t.do("delete definitions", func() error {
		for _, id := range ids {
			for _, text := range []string{"delete from definition where id = ?", dropCircuit} {
				if err := query(t.conn, text, func(a *args) { a.text(id) }, nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
