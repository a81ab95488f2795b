package storetest

import (
	"context"
	"errors"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// readTwice reads in a view and again in a transaction: both must return the same.
func readTwice[T any](b *bed, what string, read func(scheduler.View) (T, error)) (got T) {
	b.Helper()
	b.view(func(v scheduler.View) (err error) {
		got, err = read(v)
		return err
	})
	b.update(func(tx scheduler.Tx) error {
		again, err := read(tx)
		b.same(what+" in a transaction", again, got)
		return err
	})
	return got
}

// perPage is how many entries a page of readPages has.
const perPage = 2

// readPages reads a list to its end, and as readTwice does. q asks for the first page, of perPage entries; after makes
// it ask for the page that begins after an entry.
func readPages[Q, T any](
	b *bed, what string, q Q, page func(scheduler.View, context.Context, Q) ([]T, error), after func(*Q, T),
) []T {
	b.Helper()
	return readTwice(b, what, func(v scheduler.View) (all []T, err error) {
		for q := q; ; {
			got, err := page(v, b.Context(), q)
			if len(got) == 0 || err != nil {
				return all, err
			}
			if len(got) > perPage {
				b.Fatalf("a page of %d holds %d", perPage, len(got))
			}
			all = append(all, got...)
			after(&q, got[len(got)-1])
		}
	})
}

// scheduleState is the content of the tables of schedules.
type scheduleState struct {
	Definitions []*rules.Definition
	Ticks       map[string][]rules.TickRow
	Circuits    []*rules.Circuit
	Policies    []rules.Policy
	Handlers    []lessor.Handler
	Alerts      []lessor.Alert
	Audit       []lessor.Audited
}

// scheduleState reads the tables, with the ticks of these definitions.
func (b *bed) scheduleState(ids ...string) scheduleState {
	b.Helper()
	const all = 1000
	return readTwice(b, "the tables of schedules", func(v scheduler.View) (s scheduleState, err error) {
		ctx, errs := b.Context(), [6]error{}
		s.Definitions, errs[0] = v.DefinitionList(ctx, scheduler.DefinitionQuery{Limit: all})
		s.Circuits, errs[1] = v.Circuits(ctx, scheduler.CircuitQuery{Limit: all})
		s.Policies, errs[2] = v.Policies(ctx)
		s.Handlers, errs[3] = v.Handlers(ctx)
		s.Alerts, errs[4] = v.AlertList(ctx, scheduler.AlertQuery{Limit: all})
		s.Audit, errs[5] = v.AuditList(ctx, scheduler.AuditQuery{Limit: all})
		s.Ticks = map[string][]rules.TickRow{}
		for _, id := range ids {
			if s.Ticks[id], err = v.TickList(ctx,
				scheduler.TickQuery{Definition: id, Tenant: acme, Limit: all}); err != nil {
				return s, err
			}
		}
		return s, errors.Join(errs[:]...)
	})
}

// fillSchedules writes a row into every table.
func (b *bed) fillSchedules(tx scheduler.Tx, id string) error {
	ctx := b.Context()
	return errors.Join(
		tx.SaveDefinitions(ctx, []*rules.Definition{b.definition(id)}),
		tx.SaveTicks(ctx, []rules.TickRow{
			{Definition: id, Tenant: acme, At: 10, Outcome: lessor.TickFired, Run: b.jobID()},
		}),
		tx.SaveCircuits(ctx, []*rules.Circuit{
			{Definition: id, Tenant: acme, State: lessor.CircuitOpen, Failures: 5, OpenedAt: 3, RetryAt: 9},
		}),
		tx.SavePolicy(ctx, rules.Policy{Tenant: acme, Class: id, Weight: 3}),
		tx.SaveHandler(ctx, lessor.Handler{HandlerID: id, Schema: []byte(`{}`), UpdatedAt: 7}),
		tx.SaveAlerts(ctx, []lessor.Alert{
			{ID: lessor.AlertID{UUID: b.uuid()}, Kind: lessor.AlertCircuitOpen, Subject: id, RaisedAt: 1},
		}),
		tx.SaveAudit(ctx, []lessor.Audited{
			{ID: lessor.AuditID{UUID: b.uuid()}, At: 4, Actor: "a", Action: "put", Object: id},
		}),
	)
}

// scheduleFailureLeavesNothing fails a transaction that writes to all tables. It also commits one, and reads it after a
// restart.
func scheduleFailureLeavesNothing(b *bed) {
	b.update(func(tx scheduler.Tx) error { return b.fillSchedules(tx, "there-before") })
	before := b.scheduleState("there-before", "nightly")
	b.wants(b.Update(b.Context(), func(tx scheduler.Tx) error {
		if err := errors.Join(b.fillSchedules(tx, "nightly"),
			tx.DeleteDefinitions(b.Context(), []string{"there-before"})); err != nil {
			return err
		}
		return errTest
	}), errTest)
	b.same("the tables of schedules after a failure", b.scheduleState("there-before", "nightly"), before)
	b.update(func(tx scheduler.Tx) error { return b.fillSchedules(tx, "nightly") })
	after := b.scheduleState("there-before", "nightly")
	if len(after.Definitions) != 2 || len(after.Ticks["nightly"]) != 1 || len(after.Circuits) != 2 ||
		len(after.Policies) != 2 ||
		len(after.Handlers) != 2 || len(after.Alerts) != 2 || len(after.Audit) != 2 {
		b.Fatalf("a committed row is not there: %+v", after)
	}
	b.reopen()
	b.same("the tables of schedules after a restart", b.scheduleState("there-before", "nightly"), after)
}

// schedulesOfNothing calls every plural method with nothing.
func schedulesOfNothing(b *bed) {
	b.update(func(tx scheduler.Tx) error {
		ctx := b.Context()
		definitions, err := tx.LockDefinitions(ctx, nil)
		b.must(err)
		b.same("definitions", definitions, nil)
		due, err := tx.DueDefinitions(ctx, 1, 10)
		b.must(err)
		b.same("due definitions", due, nil)
		circuits, err := tx.LockCircuits(ctx, nil, true)
		b.must(err)
		b.same("circuits", circuits, nil)
		decided, err := tx.DecidedTicks(ctx, nil, 1<<40, 10)
		b.must(err)
		b.same("decided ticks", decided, nil)
		n, err := tx.PurgeRecords(ctx, 1<<40, 10)
		if n != 0 {
			b.Fatalf("%d rows of empty tables were purged", n)
		}
		return errors.Join(err, tx.SaveDefinitions(ctx, nil), tx.DeleteDefinitions(ctx, nil),
			tx.SaveTicks(ctx, nil), tx.ReplaceTicks(ctx, nil),
			tx.SaveCircuits(ctx, nil), tx.SaveAlerts(ctx, nil), tx.SaveAudit(ctx, nil))
	})
	b.same("the tables of schedules", b.scheduleState(), scheduleState{})
}
