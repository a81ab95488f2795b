package postgres

import (
	"errors"
	"fmt"
	"testing"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// wholeScheduleReads are the statements about definitions that read a whole table, or a whole index. nextTick
// stops at the first row; an operator acknowledges one alert at a time.
var wholeScheduleReads = append([]*wire.Statement{
	readPolicies, readHandlers, readBlocks, nextTick, openAlert, readOneAlert, acknowledgeAlert,
}, listCircuitTicks...)

// restOfSchedules are the statements that would fail without rows.
var restOfSchedules = []*wire.Statement{putQueueAgain, putDelayedAgain, putDoneAgain, closeRuns}

// fillSchedules stores definitions, circuits, ticks, alerts and audit entries beside the jobs of fill.
func fillSchedules(t *testing.T, url string, n int) {
	t.Helper()
	//nolint:dupword // columns of one value
	for _, text := range []string{
		`insert into definition (` + definitionColumns + `)
			select 'd' || i, md5('t' || i %% 50)::uuid, 'm' || i %% 20, '1', 'cron', '* * * * *', 0, 'UTC',
				'h', 'k', 'c', 1,
			1, 5, 1000, false, 1000, 1000, i %% 20 > 0, 'skip', 'latest',
				1000, 0, 5, 1000, false, i, i, 4000000000000 + i, i,
			i, '{}'
			from generate_series(1, %[1]d, 20) i on conflict do nothing`,
		`insert into circuit (` + circuitColumns + `)
			select 'd' || i, md5('t' || i %% 50)::uuid, case i %% 50 when 1 then 'open' else '' end, 0, 0, 0, null
			from generate_series(1, %[1]d, 20) i on conflict do nothing`,
		`insert into tick (` + tickColumns + `)
			select 'd' || i %% 200, i, md5('t' || i %% 50)::uuid,
			case i %% 10 when 1 then 'circuitOpen' else 'fired' end, '', md5('r' || i)::uuid, 0, 0, 1
			from generate_series(1, %[1]d, 7) i on conflict do nothing`,
		`insert into alert (` + alertColumns + `)
			select md5('a' || i)::uuid, 'stale', 's' || i, md5('t' || i %% 50)::uuid, 'm', i, i / 10 %% 5, 1, 0, null
			from generate_series(1, %[1]d, 10) i on conflict do nothing`,
		`insert into audit (` + auditColumns + `)
			select md5('a' || i)::uuid, i, 'a' || i %% 50, 'put', 'o' || i %% 500, 't', null, null
			from generate_series(1, %[1]d, 10) i on conflict do nothing`,
		`insert into definition_job select 'd' || i %% 200, md5('j' || i)::uuid, i %% 4 > 0
			from generate_series(1, %[1]d, 2) i on conflict do nothing`,
		`update done set tenant = md5('t' || seq %% 50)::uuid,
			definition = case seq %% 8 when 4 then 'd' || seq %% 200 end, started_at = seq
			where seq <= %[1]d and started_at = 0`,
	} {
		readAll(t, url, fmt.Sprintf(text, n), nil)
	}
	readAll(t, url, "analyze", nil)
}

// exerciseSchedules uses every statement about schedules once, and rolls back.
func exerciseSchedules(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	job, lease, tenant := lessor.JobID{UUID: lessor.UUID{1}}, lessor.LeaseID{UUID: lessor.UUID{2}}, lessor.TenantID{}
	err := s.View(ctx, func(v scheduler.View) error {
		var errs []error
		for _, of := range []*lessor.TenantID{nil, &tenant} {
			_, circuits := v.Circuits(ctx, scheduler.CircuitQuery{Tenant: of, Limit: 1})
			_, locks := v.LockList(ctx, scheduler.LockQuery{Tenant: of, Limit: 1})
			errs = append(errs, circuits, locks)
			for _, name := range []string{"", "x"} {
				_, definitions := v.DefinitionList(ctx, scheduler.DefinitionQuery{Tenant: of, Module: name, Limit: 1})
				_, alerts := v.AlertList(ctx, scheduler.AlertQuery{Tenant: of, Open: name != "", Limit: 1})
				_, byActor := v.AuditList(ctx, scheduler.AuditQuery{Actor: name, Limit: 1})
				_, byObject := v.AuditList(ctx, scheduler.AuditQuery{Actor: name, Object: "x", Limit: 1})
				_, ticks := v.CircuitTicks(ctx, scheduler.CircuitTickQuery{Definition: name, Tenant: of, Limit: 1})
				_, run := v.CircuitTicks(ctx,
					scheduler.CircuitTickQuery{Definition: name, Tenant: of, Run: &job, Limit: 1})
				errs = append(errs, definitions, alerts, byActor, byObject, ticks, run)
			}
		}
		for _, q := range []scheduler.ListQuery{
			{Claimed: true},
			{Status: lessor.RunRetrying},
			{Status: lessor.RunQueued},
			{Definition: "x"},
			{Trace: "x"},
		} {
			q.Limit = 1
			_, list := v.List(ctx, q)
			errs = append(errs, list)
		}
		_, definitions := v.Definitions(ctx, []string{"x"})
		_, next := v.NextTick(ctx)
		_, open := v.OpenRuns(ctx, []*rules.Definition{{ID: "x"}}, 1)
		_, ticks := v.TickList(ctx, scheduler.TickQuery{Definition: "x", Limit: 1})
		_, policies := v.Policies(ctx)
		_, handlers := v.Handlers(ctx)
		_, alert := v.OpenAlert(ctx, "x", "x", tenant)
		_, one := v.Alert(ctx, lessor.AlertID{})
		_, _, attempt := v.AttemptOf(ctx, lease)
		return errors.Join(append(errs, definitions, next, open, ticks, policies, handlers, alert, one, attempt,
			v.EachBlock(ctx, func(scheduler.Block) error { return nil }))...)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(ctx, func(tx scheduler.Tx) error {
		d := &rules.Definition{ID: "x"}
		_, locked := tx.LockDefinitions(ctx, []string{"x"})
		_, due := tx.DueDefinitions(ctx, 1, 1)
		_, circuits := tx.LockCircuits(ctx, []string{"x"}, true)
		_, seized := tx.LockCircuits(ctx, []string{"x"}, false)
		_, purged := tx.PurgeRecords(ctx, 1, 1)
		return errors.Join(locked, due, circuits, seized, purged, tx.SaveDefinitions(ctx, []*rules.Definition{d}),
			tx.SaveDefinitions(ctx, []*rules.Definition{d}), tx.SaveTicks(ctx, []rules.TickRow{{Definition: "x"}}),
			tx.ReplaceTicks(ctx, []rules.TickRow{{Definition: "x"}}),
			tx.SaveCircuits(ctx, []*rules.Circuit{{Definition: "x"}}),
			tx.SavePolicy(ctx, rules.Policy{}), tx.SaveHandler(ctx, lessor.Handler{}),
			tx.SaveHandler(ctx, lessor.Handler{Schema: []byte("{}")}),
			tx.SaveAlerts(ctx, []lessor.Alert{{}}), tx.AcknowledgeAlert(ctx, lessor.AlertID{}, "x",
				1), tx.SaveAudit(ctx, []lessor.Audited{{}}), tx.DeleteDefinitions(ctx, []string{"x"}),
			tx.Insert(ctx, []*rules.Spec{{ID: job, Lane: rules.Lane{Definition: "x"}}}), errUndo)
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
}
