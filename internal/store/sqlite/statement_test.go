package sqlite

import (
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

// busyDay makes every statement run, most of them often.
func busyDay(t *testing.T, s *Store) {
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
		specs := drafts(3, func(s *rules.Spec) { s.IdempotencyKey, s.Tags = s.ID.String(), []string{"red"} })
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
			if _, err := tx.Claim(ctx, []scheduler.Claim{{Key: key}}); err != nil {
				return err
			}
			if err := tx.Unclaim(ctx, []scheduler.Key{key}); err != nil {
				return err
			}
			if _, err := tx.Due(ctx, tx.Now().Add(time.Hour), 5); err != nil {
				return err
			}
			if _, err := tx.DeleteToken(ctx, lessor.TokenID{UUID: uuid()}); err != nil {
				return err
			}
			_, err := tx.Purge(ctx, tx.Now()-lessor.Instant(i), 3)
			return err
		})
		look(t, s, func(v scheduler.View) error { return readAll(t, v, specs[0].ID, ids) })
		update(t, s, func(tx scheduler.Tx) error { return readAll(t, tx, specs[0].ID, ids) })
	}
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
	_, err1 := v.LeaseEnds(ctx, leases)
	_, err2 := v.History(ctx, job)
	_, err3 := v.LeaseList(ctx, scheduler.LeaseQuery{Worker: "worker-0001", Tenant: &tenant, After: &leases[30], Limit: 3})
	_, err4 := v.LeaseList(ctx, scheduler.LeaseQuery{Limit: 3})
	_, err5 := v.NextDue(ctx)
	_, err6 := v.Tokens(ctx)
	err7 := v.EachLane(ctx, func(rules.LaneID, rules.Lane) error { return nil })
	err8 := v.EachQueued(ctx, func(rules.Turn) error { return nil })
	err9 := v.EachLease(ctx, func(*rules.Held) error { return nil })
	for _, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9} {
		if err != nil {
			return err
		}
	}
	return nil
}

// statements returns all that a connection keeps, which the library does not show.
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

// TestNothingIsPreparedAgain: with STAT4 a range over a bound value makes SQLite prepare the statement again at each bind,
// which once was a third of the CPU. "+?" keeps it from looking at the value.
func TestNothingIsPreparedAgain(t *testing.T) {
	s := openAt(t, Config{Readers: 1})
	busyDay(t, s)
	for name, conn := range map[string]*sqlite.Conn{"writer": s.writer.conn, "reader": reader(t, s)} {
		often := 0
		for text, stmt := range statements(conn) {
			runs, again := status(stmt, lib.SQLITE_STMTSTATUS_RUN), status(stmt, lib.SQLITE_STMTSTATUS_REPREPARE)
			if again > 0 {
				t.Errorf("%s: prepared %d times again in %d runs: %s", name, again, runs, text)
			}
			if runs >= 20 {
				often++
			}
		}
		if often < 20 {
			t.Errorf("%s: only %d statements ran often enough to tell", name, often)
		}
	}
	probe := s.writer.conn.Prep("select job from done where ended_at < ? limit ?") // that the counter can count
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
		t.Error("a range without + was not prepared again: this test no longer sees what it is for")
	}
}

// TestPlans reads the plan of every statement that a busy day needs: each finds its rows by a key or an index, and none
// sorts, so that what it costs does not grow with the jobs that were.
func TestPlans(t *testing.T) {
	s := openAt(t, Config{Readers: 1})
	busyDay(t, s)
	whole := map[string]bool{ // read to their ends by what they are for
		"select id, " + laneColumns + " from lane order by id":                     true,
		"select " + turnColumns + " from queue order by seq":                       true,
		"select " + leaseColumns + " from " + leaseTables + " order by lease.n":    true,
		"select seq from queue order by seq":                                       true,
		"select n, seqs from gone order by n":                                      true,
		findLease:                                                                  true, // live leases, for the later pages of a list
		findBefore:                                                                 true,
		"select " + tokenColumns + " from token order by created_at desc, id desc": true,
		"select 1 from setting limit 1":                                            true,
		"select min(until) from delayed":                                           true,
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
		if strings.Contains(p, "TEMP B-TREE") || strings.Contains(p, "SCAN ") && !strings.Contains(p, "SCAN CONSTANT ROW") && !strings.Contains(p, "-ROW VALUES") {
			t.Errorf("%s\nsorts, or reads a whole table: %s", text, p)
		}
	}
	if seen < 30 {
		t.Errorf("only %d plans were looked at", seen)
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

func plan(t *testing.T, conn *sqlite.Conn, text string) string {
	t.Helper()
	var steps []string
	err := query(conn, "explain query plan "+text, nil, func(r *row) error {
		r.n = 3
		steps = append(steps, r.text())
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
			t.Errorf("%.1f allocations a lease that is saved, want none", perLease)
		}
		return nil
	})
}
