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
	definitionColumns = "id, tenant, module, schedule_type, cron, every_s, zone, handler, lock_key, class, priority, units, max_attempts," +
		" timeout_ms, backoff_first_ms, backoff_max_ms, enabled, overlap, catch_up, catch_up_window_ms, jitter_ms, failures, cooldown_ms," +
		" paused, anchor, next_tick, due_at, created_at, updated_at, payload"
	definitionTypes  = "tutttittttiiiiiibttiiiibiiiiiy"
	selectDefinition = "select " + definitionColumns + " from definition"
)

var (
	readDefinitions = sql(selectDefinition + " where id = any($1::text[])")
	// lockDefinitions waits for the nodes that change one of them. All lock in the order of ids.
	lockDefinitions = sql(selectDefinition + " where id = any($1::text[]) order by id for update")
	// lockDueDefinitions passes over those that another node decides about.
	lockDueDefinitions = sql(selectDefinition + " where due_at > 0 and due_at <= $1::bigint order by due_at, id limit $2::bigint" +
		" for update skip locked")
	nextTick        = sql("select min(due_at) from definition where due_at > 0")
	listDefinitions = variants(selectDefinition+" where (created_at, id) < ($3::bigint, $4::text)", " order by created_at desc, id desc limit $5::bigint",
		filter{"tenant = ", "uuid"}, filter{"module <> '' and module = ", "text"})
	insertDefinitions = plural(exactly("insert into definition ("+definitionColumns+") {rows} on conflict do nothing", len(definitionTypes)),
		definitionTypes, definitionColumns)
	saveDefinitions = plural("insert into definition ("+definitionColumns+") {rows}"+
		" on conflict (id) do update set "+excluded(definitionColumns), definitionTypes, definitionColumns)
	dropDefinitions = sql("delete from definition where id = any($1::text[])")
)

func bindDefinition(r *rows, d *rules.Definition) {
	r.text(d.ID)
	r.id(d.Tenant.UUID)
	r.text(d.Module)
	r.text(d.Schedule.Type)
	r.text(d.Schedule.Cron)
	r.int(d.Schedule.Seconds)
	r.text(d.Zone)
	r.text(d.Handler)
	r.text(d.LockKey)
	r.text(d.Class)
	r.int(int64(d.Priority))
	r.int(int64(d.Units))
	r.int(int64(d.MaxAttempts))
	r.millis(d.Timeout)
	r.millis(d.BackoffFirst)
	r.millis(d.BackoffMax)
	r.flag(d.Enabled)
	r.text(string(d.Overlap))
	r.text(string(d.CatchUp))
	r.millis(d.CatchUpWindow)
	r.millis(d.Jitter)
	r.int(int64(d.Failures))
	r.millis(d.Cooldown)
	r.flag(d.Paused)
	r.instant(d.Anchor)
	r.instant(d.NextTick)
	r.instant(d.DueAt)
	r.instant(d.CreatedAt)
	r.instant(d.UpdatedAt)
	r.bytesOrNull(d.Payload)
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
		Payload:       r.bytes(),
	}
}

// Definitions implements scheduler.KernelView.
func (v *view) Definitions(_ context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	if len(ids) == 0 || v.err != nil {
		return ds, v.err
	}
	err := v.query("read definitions", readDefinitions, func(r *row) error {
		d := readDefinition(r)
		ds[d.ID] = d
		return nil
	}, textsOf(v, ids))
	return ds, err
}

// LockDefinitions implements scheduler.KernelTx. It remembers those that are not there: see SaveDefinitions.
func (t *tx) LockDefinitions(_ context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	if len(ids) == 0 || t.err != nil {
		return ds, t.err
	}
	t.add("lock definitions", step{stmt: lockDefinitions, each: func(r *row) error {
		d := readDefinition(r)
		ds[d.ID] = d
		return nil
	}}, textsOf(&t.view, ids))
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
	t.add("lock due definitions", step{stmt: lockDueDefinitions, each: func(r *row) error {
		due = append(due, readDefinition(r))
		return nil
	}}, instantOf(now), limitOf(limit))
	t.look()
	return due, t.send("lock due definitions")
}

// NextTick implements scheduler.KernelView.
func (v *view) NextTick(context.Context) (next lessor.Instant, err error) {
	err = v.query("read next tick", nextTick, func(r *row) error {
		next = r.instant()
		return nil
	})
	return next, err
}

// DefinitionList implements scheduler.KernelView.
func (v *view) DefinitionList(_ context.Context, q scheduler.DefinitionQuery) (ds []*rules.Definition, err error) {
	at, name := placeOf(q.After)
	err = v.page("list definitions", listDefinitions, [][]byte{idOrNil(q.Tenant), textOrNil(q.Module)},
		func(r *row) { ds = append(ds, readDefinition(r)) }, at, name, limitOf(q.Limit))
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
		s := step{stmt: insertDefinitions, rows: t.definitionRows(fresh), guard: scheduler.ErrAgain}
		_ = t.write("insert definitions", s, int8Of(int64(len(fresh)))) // kept in t.err
	}
	if len(known) > 0 {
		_ = t.write("save definitions", step{stmt: saveDefinitions, rows: t.definitionRows(known)})
	}
	if len(sorted) > 0 {
		_ = t.write("add circuits", step{stmt: addCircuits}, t.definitionRows(sorted).params()[:2]...)
	}
	return t.err
}

func (t *tx) definitionRows(ds []*rules.Definition) *rows {
	r := t.scratch.reset()
	for _, d := range ds {
		r.row()
		bindDefinition(r, d)
	}
	return r
}

// DeleteDefinitions implements scheduler.KernelTx.
func (t *tx) DeleteDefinitions(_ context.Context, ids []string) error {
	if len(ids) == 0 {
		return t.err
	}
	_ = t.write("delete definitions", step{stmt: dropDefinitions}, textsOf(&t.view, ids)) // kept in t.err
	return t.write("delete circuits", step{stmt: dropCircuits}, textsOf(&t.view, ids))
}
