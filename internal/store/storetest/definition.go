package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// definition returns a definition with every field set; edits change it.
func (b *bed) definition(id string, edits ...func(*rules.Definition)) *rules.Definition {
	b.Helper()
	d := &rules.Definition{
		ID: id, Tenant: acme, Module: "ledger", Version: "1.4", Schedule: lessor.Schedule{
			Type: lessor.ScheduleCron, Cron: "5 4 * * *", Seconds: 7,
		},
		Zone: "Europe/Berlin", Handler: "posting", LockKey: "lock:1", Class: "batch", Priority: lessor.Low,
		Units: 2, MaxAttempts: 3,
		Timeout: 4 * time.Second, TimeoutSet: true, BackoffFirst: 5 * time.Millisecond, BackoffMax: 6 * time.Hour,
		Enabled: true,
		Overlap: lessor.OverlapQueueOne,
		CatchUp: lessor.CatchUpAll, CatchUpWindow: 8 * time.Second, Jitter: 9 * time.Second, Failures: 10,
		Cooldown: 11 * time.Second,
		Payload:  []byte(`{"a":1}`), Paused: true, Anchor: 12, NextTick: 13, DueAt: 14, CreatedAt: 15, UpdatedAt: 16,
	}
	for v, i := reflect.ValueOf(*d), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			b.Fatalf("this test says nothing about the field %s", v.Type().Field(i).Name)
		}
	}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

func running(d *rules.Definition) { d.Paused = false }

func dueAt(at lessor.Instant) func(*rules.Definition) {
	return func(d *rules.Definition) { d.DueAt = at }
}

func (b *bed) saveDefinitions(ds ...*rules.Definition) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error { return tx.SaveDefinitions(b.Context(), ds) })
}

func (b *bed) definitions(ids ...string) map[string]*rules.Definition {
	b.Helper()
	got := readTwice(b, "definitions", func(v scheduler.View) (map[string]*rules.Definition, error) {
		return v.Definitions(b.Context(), ids)
	})
	b.update(func(tx scheduler.Tx) error {
		locked, err := tx.LockDefinitions(b.Context(), ids)
		b.same("definitions that are locked", locked, got)
		return err
	})
	return got
}

// definitionsComeBack saves definitions with all fields set, and with the required ones only.
func definitionsComeBack(b *bed) {
	full := b.definition("full")
	every := b.definition("every", func(d *rules.Definition) {
		d.Schedule = lessor.Schedule{Type: lessor.ScheduleInterval, Seconds: 3_162_240_000}
	})
	bare := &rules.Definition{ID: "bare"}
	b.saveDefinitions(full, every, bare)
	want := map[string]*rules.Definition{"full": full, "every": every, "bare": bare}
	b.same("definitions", b.definitions("full", "every", "bare", "none", "full"), want)
	// Fields that are not set lose their values.
	want["full"] = &rules.Definition{ID: "full", Tenant: globex, Priority: lessor.Normal, Enabled: true, UpdatedAt: 99}
	b.saveDefinitions(want["full"])
	b.reopen()
	b.same("definitions after a change and a restart", b.definitions("full", "every", "bare"), want)
}

// definitionPayloadsComeBack: as bytes, whatever they hold.
func definitionPayloadsComeBack(b *bed) {
	for i, payload := range []string{
		``, `{}`, `{ "b" : 1.0,"a":1e400000, "b":2 }`, `{"zero":"\u0000","half":"\ud800"}`, "{\"line\":\n\"ü\"}",
	} {
		id := fmt.Sprintf("payload-%d", i)
		b.saveDefinitions(b.definition(id, func(d *rules.Definition) { d.Payload = []byte(payload) }))
		if got := b.definitions(id)[id].Payload; string(got) != payload {
			b.Errorf("saved as %q, read as %q", payload, got)
		}
	}
}

func deletedDefinitions(b *bed) {
	b.update(func(tx scheduler.Tx) error { return b.fillSchedules(tx, "goes") })
	b.update(func(tx scheduler.Tx) error { return b.fillSchedules(tx, "stays") })
	job := b.queued(func(s *rules.Spec) { s.Lane.Definition = "goes" })
	before := b.scheduleState("goes", "stays")
	b.update(func(tx scheduler.Tx) error {
		return tx.DeleteDefinitions(b.Context(), []string{"goes", "never was"})
	})
	want := before
	want.Definitions, want.Circuits = before.Definitions[:1], before.Circuits[:1]
	b.same("the tables of schedules", b.scheduleState("goes", "stays"), want)
	b.same("its open runs", b.openRuns(10, acme, "goes"), map[string][]scheduler.OpenRun{"goes": {{Job: job.ID}}})
	b.saveDefinitions(b.definition("goes")) // and its circuit is closed
	b.same("its circuit", b.circuits("goes")["goes"], &rules.Circuit{Definition: "goes", Tenant: acme})
}

func dueDefinitions(b *bed) {
	next := func() lessor.Instant {
		b.Helper()
		return readTwice(b, "the next tick", func(v scheduler.View) (lessor.Instant, error) {
			return v.NextTick(b.Context())
		})
	}
	due := func(now lessor.Instant, limit int) (ids []string) {
		b.Helper()
		b.update(func(tx scheduler.Tx) error {
			ds, err := tx.DueDefinitions(b.Context(), now, limit)
			for _, d := range ds {
				b.same("a due definition", d, b.definition(d.ID, running, dueAt(d.DueAt)))
				ids = append(ids, d.ID)
			}
			return err
		})
		return ids
	}
	b.same("the next tick of nothing", next(), lessor.Instant(0))
	b.saveDefinitions(b.definition("never", running, dueAt(0)))
	b.same("the next tick of one that has none", next(), lessor.Instant(0))
	b.saveDefinitions(
		b.definition("later", running, dueAt(300)), b.definition("z-first", running, dueAt(100)),
		b.definition("second", running, dueAt(200)),
	)
	b.same("the next tick", next(), lessor.Instant(100))
	b.same("due before the first", due(99, 10), nil)
	b.same("due with the first", due(100, 10), []string{"z-first"})
	b.same("due, all", due(300, 10), []string{"z-first", "second", "later"})
	b.same("due, at most two", due(300, 2), []string{"z-first", "second"})
	b.same("due, at most none", due(300, 0), nil)
	b.saveDefinitions(b.definition("z-first", running, dueAt(400)), b.definition("second", running, dueAt(0)))
	b.same("the next tick after two were decided", next(), lessor.Instant(300))
	b.same("due after two were decided", due(400, 10), []string{"later", "z-first"})
}

func definitionList(b *bed) {
	// Created at three instants; of each the largest id comes first, by bytes and not in the order of a language.
	var all []*rules.Definition
	for i, id := range []string{"a", "Zebra", "ab", "a_b", "a.b", "ä", "b-c"} {
		all = append(all, b.definition(id, func(d *rules.Definition) {
			d.CreatedAt = lessor.Instant(1000 - 10*((i+1)/3))
			d.Tenant, d.Module = tenant(byte(i%2)), []string{"", "ledger", "mail"}[i%3]
		}))
	}
	mixed := slices.Clone(all)
	slices.Reverse(mixed)
	b.saveDefinitions(mixed...)
	zero, one, none := tenant(0), tenant(1), tenant(7)
	for _, tenant := range []*lessor.TenantID{nil, &zero, &one, &none} {
		for _, module := range []string{"", "ledger", "mail", "none"} {
			want := []*rules.Definition{}
			for _, d := range all {
				if (tenant == nil || d.Tenant == *tenant) && (module == "" || d.Module == module) {
					want = append(want, d)
				}
			}
			q := scheduler.DefinitionQuery{Tenant: tenant, Module: module, Limit: perPage}
			got := readPages(b, "definitions", q, scheduler.View.DefinitionList,
				func(q *scheduler.DefinitionQuery, last *rules.Definition) {
					q.After = scheduler.PlaceOfDefinition(last)
				})
			b.same(fmt.Sprintf("definitions of tenant %v, module %q", tenant, module), got, want)
		}
	}
}
