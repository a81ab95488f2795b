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
	definitionColumns = "id, tenant, module, schedule_type, cron, every_s, zone, handler, lock_key, class, priority, units, max_attempts," +
		" timeout_ms, backoff_first_ms, backoff_max_ms, enabled, overlap, catch_up, catch_up_window_ms, jitter_ms, failures, cooldown_ms," +
		" paused, anchor, next_tick, due_at, created_at, updated_at, payload"
	definitionTypes  = "tutttittttiiiiiibttiiiibiiiiiy"
	selectDefinition = "select " + definitionColumns + " from definition"
)

var (
	readDefinitions = wire.SQL(selectDefinition + " where id = any($1::text[])")
	// lockDefinitions waits for the nodes that change one of them. All lock in the order of ids.
	lockDefinitions = wire.SQL(selectDefinition + " where id = any($1::text[]) order by id for update")
	// lockDueDefinitions passes over those that another node decides about.
	lockDueDefinitions = wire.SQL(selectDefinition + " where due_at > 0 and due_at <= $1::bigint order by due_at, id limit $2::bigint" +
		" for update skip locked")
	nextTick        = wire.SQL("select min(due_at) from definition where due_at > 0")
	listDefinitions = variants(selectDefinition+" where (created_at, id) < ($3::bigint, $4::text)", " order by created_at desc, id desc limit $5::bigint",
		filter{"tenant = ", "uuid"}, filter{"module <> '' and module = ", "text"})
	insertDefinitions = wire.Plural(wire.Exactly("insert into definition ("+definitionColumns+") {rows} on conflict do nothing", len(definitionTypes)),
		definitionTypes, definitionColumns)
	saveDefinitions = wire.Plural("insert into definition ("+definitionColumns+") {rows}"+
		" on conflict (id) do update set "+wire.Excluded(definitionColumns), definitionTypes, definitionColumns)
	dropDefinitions = wire.SQL("delete from definition where id = any($1::text[])")
)

func bindDefinition(r *wire.Rows, d *rules.Definition) {
	r.Text(d.ID)
	r.ID(d.Tenant.UUID)
	r.Text(d.Module)
	r.Text(d.Schedule.Type)
	r.Text(d.Schedule.Cron)
	r.Int(d.Schedule.Seconds)
	r.Text(d.Zone)
	r.Text(d.Handler)
	r.Text(d.LockKey)
	r.Text(d.Class)
	r.Int(int64(d.Priority))
	r.Int(int64(d.Units))
	r.Int(int64(d.MaxAttempts))
	r.Millis(d.Timeout)
	r.Millis(d.BackoffFirst)
	r.Millis(d.BackoffMax)
	r.Flag(d.Enabled)
	r.Text(string(d.Overlap))
	r.Text(string(d.CatchUp))
	r.Millis(d.CatchUpWindow)
	r.Millis(d.Jitter)
	r.Int(int64(d.Failures))
	r.Millis(d.Cooldown)
	r.Flag(d.Paused)
	r.Instant(d.Anchor)
	r.Instant(d.NextTick)
	r.Instant(d.DueAt)
	r.Instant(d.CreatedAt)
	r.Instant(d.UpdatedAt)
	r.BytesOrNull(d.Payload)
}

func readDefinition(r *wire.Row) *rules.Definition {
	return &rules.Definition{
		ID:            r.Text(),
		Tenant:        lessor.TenantID{UUID: r.ID()},
		Module:        r.Text(),
		Schedule:      lessor.Schedule{Type: r.Text(), Cron: r.Text(), Seconds: r.Int()},
		Zone:          r.Text(),
		Handler:       r.Text(),
		LockKey:       r.Text(),
		Class:         r.Text(),
		Priority:      lessor.Priority(r.Int()),
		Units:         int(r.Int()),
		MaxAttempts:   int(r.Int()),
		Timeout:       r.Millis(),
		BackoffFirst:  r.Millis(),
		BackoffMax:    r.Millis(),
		Enabled:       r.Flag(),
		Overlap:       lessor.Overlap(r.Text()),
		CatchUp:       lessor.CatchUp(r.Text()),
		CatchUpWindow: r.Millis(),
		Jitter:        r.Millis(),
		Failures:      int(r.Int()),
		Cooldown:      r.Millis(),
		Paused:        r.Flag(),
		Anchor:        r.Instant(),
		NextTick:      r.Instant(),
		DueAt:         r.Instant(),
		CreatedAt:     r.Instant(),
		UpdatedAt:     r.Instant(),
		Payload:       r.Bytes(),
	}
}

// Definitions implements scheduler.KernelView.
func (v *view) Definitions(_ context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	if len(ids) == 0 || v.err != nil {
		return ds, v.err
	}
	err := v.query("read definitions", readDefinitions, func(r *wire.Row) error {
		d := readDefinition(r)
		ds[d.ID] = d
		return nil
	}, wire.Texts(ids))
	return ds, err
}

// LockDefinitions implements scheduler.KernelTx. It remembers those that are not there: see SaveDefinitions.
func (t *tx) LockDefinitions(_ context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	if len(ids) == 0 || t.err != nil {
		return ds, t.err
	}
	t.add("lock definitions", wire.Step{Stmt: lockDefinitions, Each: func(r *wire.Row) error {
		d := readDefinition(r)
		ds[d.ID] = d
		return nil
	}}, wire.Texts(ids))
	t.look()
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

// DueDefinitions implements scheduler.KernelTx.
func (t *tx) DueDefinitions(_ context.Context, now lessor.Instant, limit int) (due []*rules.Definition, err error) {
	if limit <= 0 || t.err != nil {
		return nil, t.err
	}
	t.add("lock due definitions", wire.Step{Stmt: lockDueDefinitions, Each: func(r *wire.Row) error {
		due = append(due, readDefinition(r))
		return nil
	}}, wire.Instant(now), wire.Limit(limit))
	t.look()
	return due, t.send("lock due definitions")
}

// NextTick implements scheduler.KernelView.
func (v *view) NextTick(context.Context) (next lessor.Instant, err error) {
	err = v.query("read next tick", nextTick, func(r *wire.Row) error {
		next = r.Instant()
		return nil
	})
	return next, err
}

// DefinitionList implements scheduler.KernelView.
func (v *view) DefinitionList(_ context.Context, q scheduler.DefinitionQuery) (ds []*rules.Definition, err error) {
	at, name := placeOf(q.After)
	err = v.page("list definitions", listDefinitions, [][]byte{wire.IDOrNil(q.Tenant), wire.TextOrNil(q.Module)},
		func(r *wire.Row) { ds = append(ds, readDefinition(r)) }, at, name, wire.Limit(q.Limit))
	return ds, err
}

// SaveDefinitions implements scheduler.KernelTx. One that LockDefinitions did not find, and that another node has made since, is
// scheduler.ErrAgain: whoever decided did not know of it. Each has its circuit from then on.
func (t *tx) SaveDefinitions(_ context.Context, ds []*rules.Definition) error {
	sorted := slices.SortedFunc(slices.Values(ds), func(a, b *rules.Definition) int { return strings.Compare(a.ID, b.ID) })
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
	r := t.scratch.Reset()
	for _, d := range ds {
		r.Next()
		bindDefinition(r, d)
	}
	return r
}

// DeleteDefinitions implements scheduler.KernelTx.
func (t *tx) DeleteDefinitions(_ context.Context, ids []string) error {
	if len(ids) == 0 {
		return t.err
	}
	_ = t.write("delete definitions", wire.Step{Stmt: dropDefinitions}, wire.Texts(ids)) // kept in t.err
	return t.write("delete circuits", wire.Step{Stmt: dropCircuits}, wire.Texts(ids))
}
