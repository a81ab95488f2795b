package sqlite

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// runEveryStatement runs every statement of the store, most of them often.
func runEveryStatement(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	for i := range 20 {
		held := leased(t, s, 40)
		ids := leaseIDs(held)
		update(t, s, func(tx scheduler.Tx) error { return beat(ctx, tx, ids) })
		update(t, s, func(tx scheduler.Tx) error { return finish(ctx, tx, ids[:20], completed) })
		update(t, s, func(tx scheduler.Tx) error {
			return finish(ctx, tx, ids[20:30], rules.End{Outcome: rules.OutcomeFailed, Reason: "failed"})
		})
		specs := drafts(3, func(s *rules.Spec) {
			s.IdempotencyKey, s.Tags, s.Lane.Definition = s.ID.String(), []string{"red"}, "nightly"
		})
		update(t, s, func(tx scheduler.Tx) error {
			if err := submit(ctx, tx, specs); err != nil {
				return err
			}
			for _, err := range []error{
				tx.Note(ctx, []rules.Note{{Job: specs[0].ID}}),
				tx.SaveReports(ctx, []rules.Report{{Job: specs[0].ID, Message: new("m")}}),
				tx.SaveSetting(ctx, "name", []byte{byte(i)}),
				tx.SaveSetting(ctx, "none", nil),
				tx.SaveToken(ctx, scheduler.Token{ID: lessor.TokenID{UUID: uuid()}, Hash: [32]byte{byte(i)}}),
			} {
				if err != nil {
					return err
				}
			}
			key := scheduler.Key{Key: specs[0].IdempotencyKey}
			if _, err := tx.TakeKeys(ctx, []scheduler.JobKey{{Key: key}}); err != nil {
				return err
			}
			if err := tx.FreeKeys(ctx, []scheduler.Key{key}); err != nil {
				return err
			}
			if _, err := tx.Due(ctx, tx.Now().Add(time.Hour), 5); err != nil {
				return err
			}
			if _, err := tx.DeleteToken(ctx, lessor.TokenID{UUID: uuid()}); err != nil {
				return err
			}
			if err := writeSchedules(ctx, tx, i); err != nil {
				return err
			}
			_, err := tx.Purge(ctx, tx.Now()-lessor.Instant(i), 3)
			return err
		})
		update(t, s, func(tx scheduler.Tx) error {
			held, err := grant(ctx, tx, specs[:2])
			if err != nil {
				return err
			}
			return finish(ctx, tx, leaseIDs(held[:1]), completed)
		})
		inView(t, s, func(v scheduler.View) error { return readAll(t, v, specs[0].ID, ids) })
		update(t, s, func(tx scheduler.Tx) error { return readAll(t, tx, specs[0].ID, ids) })
	}
}

// writeSchedules calls every method that writes about definitions.
func writeSchedules(ctx context.Context, tx scheduler.Tx, i int) error {
	id := fmt.Sprintf("definition-%d", i)
	d := &rules.Definition{ID: id, Module: "ledger", Enabled: i%3 == 0, DueAt: lessor.Instant(i)}
	tick := rules.TickRow{
		Definition: id, At: lessor.Instant(i), Outcome: lessor.TickCircuitOpen, Run: lessor.JobID{UUID: uuid()},
	}
	alert := lessor.Alert{
		ID: lessor.AlertID{UUID: uuid()}, Kind: lessor.AlertDead, Subject: id, ClearedAt: lessor.Instant(i % 2),
	}
	_, err1 := tx.LockDefinitions(ctx, []string{id})
	_, err2 := tx.DueDefinitions(ctx, lessor.Instant(i), 3)
	_, err3 := tx.LockCircuits(ctx, []string{id}, true)
	_, err4 := tx.PurgeRecords(ctx, lessor.Instant(i-5), 3)
	return errors.Join(
		err1, err2, err3, err4, tx.SaveDefinitions(ctx, []*rules.Definition{d}), tx.DeleteDefinitions(ctx,
			[]string{fmt.Sprintf("definition-%d", i-9)}),
		tx.SaveTicks(ctx, []rules.TickRow{tick}), tx.ReplaceTicks(ctx, []rules.TickRow{tick}),
		tx.SaveCircuits(ctx, []*rules.Circuit{{Definition: id, State: lessor.CircuitOpen}, {Definition: "idle"}}),
		tx.SavePolicy(ctx, rules.Policy{Weight: i}), tx.SaveAlerts(ctx, []lessor.Alert{alert}),
		tx.AcknowledgeAlert(ctx, alert.ID, "a", 1),
		tx.SaveHandler(ctx, lessor.Handler{HandlerID: id, Schema: []byte("{}")}), tx.SaveHandler(ctx,
			lessor.Handler{HandlerID: "none"}),
		tx.SaveAudit(ctx, []lessor.Audited{{ID: lessor.AuditID{UUID: uuid()}, At: lessor.Instant(i)}}),
	)
}

// readAll calls every method of a view.
func readAll(t *testing.T, v scheduler.View, job lessor.JobID, leases []lessor.LeaseID) error {
	ctx, tenant := t.Context(), lessor.TenantID{}
	for _, state := range append(lessor.States(), "") {
		page, err := v.List(ctx, scheduler.ListQuery{State: state, Type: "mail", Tag: "red", Tenant: &tenant, Limit: 2})
		if err != nil {
			return err
		}
		if _, err = v.List(ctx, scheduler.ListQuery{State: state, After: page.Next, Limit: 3}); err != nil {
			return err
		}
	}
	if err := listAllRuns(ctx, v); err != nil {
		return err
	}
	if err := readSchedules(ctx, v, leases); err != nil {
		return err
	}
	_, err1 := v.LeaseEnds(ctx, leases)
	_, err2 := v.Histories(ctx, []lessor.JobID{job})
	_, err3 := v.LeaseList(ctx, scheduler.LeaseQuery{
		Worker: "worker-0001", Tenant: &tenant, After: &scheduler.LeasePlace{B: 30}, Limit: 3,
	})
	_, err4 := v.LeaseList(ctx, scheduler.LeaseQuery{Limit: 3})
	_, err10 := v.WorkspaceLeases(ctx, "here")
	_, err5 := v.NextDue(ctx)
	_, err6 := v.Tokens(ctx)
	err7 := v.EachLane(ctx, func(rules.LaneID, rules.Lane) error { return nil })
	err8 := v.EachQueued(ctx, func(rules.Turn) error { return nil })
	err9 := v.EachLease(ctx, func(*rules.Held) error { return nil })
	_, err11 := v.NoticedLanes(ctx)
	_, err12 := v.JobLanes(ctx, lessor.JobID{}, 2, func(rules.LaneID) {})
	for _, err := range []error{err11, err12, err1, err2, err3, err4, err5, err6, err7, err8, err9, err10} {
		if err != nil {
			return err
		}
	}
	return nil
}

// listAllRuns asks for runs in every way.
func listAllRuns(ctx context.Context, v scheduler.View) error {
	q := scheduler.ListQuery{Claimed: true, Limit: 2}
	for _, q.Status = range append(lessor.RunStatuses(), "") {
		for _, q.Definition = range []string{"", "nightly"} {
			for _, q.Trace = range []string{"", "4bf92f3577b34da6a3ce929d0e0e4736"} {
				if _, err := v.List(ctx, q); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readSchedules calls every method of a view that is about definitions, with every filter alone and with all.
func readSchedules(ctx context.Context, v scheduler.View, leases []lessor.LeaseID) error {
	var errs []error
	keep := func(_ any, err error) { errs = append(errs, err) }
	tenant, run := lessor.TenantID{}, lessor.JobID{UUID: uuid()}
	for _, tenant := range []*lessor.TenantID{nil, &tenant} {
		for _, name := range []string{"", "ledger"} {
			keep(v.DefinitionList(ctx, scheduler.DefinitionQuery{
				Tenant: tenant, Module: name, After: &scheduler.Named{Name: name}, Limit: 3,
			}))
			keep(v.CircuitTicks(ctx, scheduler.CircuitTickQuery{Tenant: tenant, Definition: name, Limit: 3}))
			keep(v.CircuitTicks(ctx, scheduler.CircuitTickQuery{
				Tenant: tenant, Definition: name, Run: &run, After: &run, Limit: 3,
			}))
			keep(v.AuditList(ctx, scheduler.AuditQuery{Actor: name, Limit: 3}))
			keep(v.AuditList(ctx, scheduler.AuditQuery{
				Actor: name, Object: "o", After: &lessor.AuditID{UUID: uuid()}, Limit: 3,
			}))
		}
		for _, open := range []bool{false, true} {
			keep(v.AlertList(ctx, scheduler.AlertQuery{Tenant: tenant, Open: open, Limit: 3}))
			keep(v.AlertList(ctx, scheduler.AlertQuery{
				Tenant: tenant, Open: open, After: &lessor.AlertID{UUID: uuid()}, Limit: 3,
			}))
		}
		keep(v.Circuits(ctx, scheduler.CircuitQuery{Tenant: tenant, After: &scheduler.Named{Name: "c"}, Limit: 3}))
		keep(v.LockList(ctx, scheduler.LockQuery{Tenant: tenant, Limit: 3}))
		keep(v.LockList(ctx, scheduler.LockQuery{Tenant: tenant, After: &scheduler.LeasePlace{B: 30}, Limit: 3}))
	}
	keep(v.TickList(ctx, scheduler.TickQuery{Definition: "d", Limit: 3}))
	keep(v.TickList(ctx, scheduler.TickQuery{Definition: "d", From: 1, To: 5, After: 2, Limit: 3}))
	keep(v.Definitions(ctx, []string{"definition-1"}))
	keep(v.NextTick(ctx))
	keep(v.OpenRuns(ctx, []*rules.Definition{{ID: "nightly"}}, 3))
	keep(v.Policies(ctx))
	keep(v.Handlers(ctx))
	keep(v.Alert(ctx, lessor.AlertID{UUID: uuid()}))
	keep(v.OpenAlert(ctx, lessor.AlertDead, "definition-1", tenant))
	keep(nil, v.EachBlock(ctx, func(scheduler.Block) error { return nil }))
	_, _, err := v.AttemptOf(ctx, leases[0])
	return errors.Join(append(errs, err)...)
}

// statements returns the statements that a connection keeps. The library does not export them.
func statements(conn *sqlite.Conn) map[string]*sqlite.Stmt {
	field := reflect.ValueOf(conn).Elem().FieldByName("stmts")
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Interface().(map[string]*sqlite.Stmt)
}

// status reads one of SQLite's counters of a statement.
func status(stmt *sqlite.Stmt, op int32) int32 {
	v := reflect.ValueOf(stmt).Elem()
	tls := (*libc.TLS)(unsafe.Pointer(v.FieldByName("conn").Elem().FieldByName("tls").Pointer()))
	return lib.Xsqlite3_stmt_status(tls, uintptr(v.FieldByName("stmt").Uint()), op, 0)
}

// TestNothingIsPreparedAgain: with STAT4 a range over a bound value makes SQLite prepare the statement again at each
// bind, which once took a third of the CPU time. "+?" hides the value from the planner.
func TestNothingIsPreparedAgain(t *testing.T) {
	s := openAt(t, Config{Readers: 1})
	runEveryStatement(t, s)
	for name, conn := range map[string]*sqlite.Conn{"writer": s.writer.conn, "reader": reader(t, s)} {
		often := 0
		for text, stmt := range statements(conn) {
			runs, again := status(stmt, lib.SQLITE_STMTSTATUS_RUN), status(stmt, lib.SQLITE_STMTSTATUS_REPREPARE)
			if again > 0 {
				t.Errorf("%s: prepared again %d times in %d runs, want none: %s", name, again, runs, text)
			}
			if runs >= 20 {
				often++
			}
		}
		if often < 20 {
			t.Errorf("%s: %d statements ran 20 times or more, want at least 20 of them", name, often)
		}
	}
	probe := s.writer.conn.Prep("select job from done where ended_at < ? limit ?") // the counter must count this one
	for i := range 10 {
		probe.BindInt64(1, int64(i))
		probe.BindInt64(2, 5)
		if _, err := probe.Step(); err != nil {
			t.Fatal(err)
		}
		if err := probe.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	if status(probe, lib.SQLITE_STMTSTATUS_REPREPARE) == 0 {
		t.Error("a range without + was not prepared again: this test can no longer fail")
	}
}

// TestNoStatementReadsAWholeTable reads the plan of every statement: each finds its rows by a key or an index, and none
// sorts, so that its cost does not grow with the number of past jobs.
func TestNoStatementReadsAWholeTable(t *testing.T) {
	s := openAt(t, Config{Readers: 1})
	runEveryStatement(t, s)
	whole := map[string]bool{ // statements that read all rows by design
		"select id, " + laneColumns + " from lane order by id": true,
		"select id, notice from lane where notice <> 0":        true, // once an hour
		readQueue:                             true,
		selectLease + " order by lease.n":     true,
		"select seq from queue order by seq":  true,
		"select n, seqs from gone order by n": true,
		readTokens:                            true,
		"select 1 from setting limit 1":       true,
		"select min(until) from delayed":      true,
		readPolicies:                          true, // one row per tenant or class that an operator has set
		readHandlers:                          true,
		readPaused:                            true, // by an index of the paused definitions
		readOpen:                              true, // by an index of the open circuits
	}
	texts := map[string]bool{}
	for _, conn := range []*sqlite.Conn{s.writer.conn, reader(t, s)} {
		for text := range statements(conn) {
			texts[text] = true
		}
	}
	seen := 0
	for text := range texts {
		p := plan(t, s.writer.conn, text)
		if whole[text] || p == "" {
			continue
		}
		seen++
		if strings.Contains(p, "TEMP B-TREE") || strings.Contains(p, "SCAN ") &&
			!strings.Contains(p, "SCAN CONSTANT ROW") && !strings.Contains(p, "-ROW VALUES") {
			t.Errorf("%s\nsorts, or reads a whole table: %s", text, p)
		}
	}
	if p := plan(t, s.writer.conn, readOpened); !strings.Contains(p, "definition_job_open") {
		t.Errorf("open runs are searched among all past runs, want the index definition_job_open: %s", p)
	}
	if seen < 30 {
		t.Errorf("%d plans were checked, want at least 30", seen)
	}
}

// reader borrows the one reader of a store until the test ends.
func reader(t *testing.T, s *Store) *sqlite.Conn {
	t.Helper()
	conn, err := s.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.giveBack(conn); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// plan returns SQLite's query plan of a statement.
func plan(t *testing.T, conn *sqlite.Conn, text string) string {
	t.Helper()
	var steps []string
	err := query(conn, "explain query plan "+text, nil, func(r *result) error {
		r.n = 3
		steps = append(steps, r.Text())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "; ")
}

func TestBindAllocatesNothing(t *testing.T) {
	s := openAt(t, Config{})
	held := leased(t, s, 64)
	update(t, s, func(tx scheduler.Tx) error {
		perLease := testing.AllocsPerRun(10, func() {
			if err := tx.SaveLeases(t.Context(), held); err != nil {
				t.Fatal(err)
			}
		}) / 64
		if perLease > 0.5 {
			t.Errorf("%.1f allocations per saved lease, want none", perLease)
		}
		return nil
	})
}
