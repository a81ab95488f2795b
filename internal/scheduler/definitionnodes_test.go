package scheduler_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lessor"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

// lockRows opens a session that locks rows, as another node does in the middle of a transaction.
func lockRows(t *testing.T, url, rows string) *pgx.Conn {
	t.Helper()
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), "set lock_timeout = '10s'; begin; "+rows+" for no key update")
	must(t, err)
	return conn
}

// TestDeletedDefinitionWaitsForNoLease: a definition is deleted while another node has the lease of its running job
// locked, which the deletion leaves alone.
func TestDeletedDefinitionWaitsForNoLease(t *testing.T) {
	url := pool.Database(t)
	w := node(t, url, config(), nil)
	w.put(interval("sync.crm", 3600, nil))
	_, err := w.Trigger(w.ctx, anybody, "sync.crm", nil)
	must(t, err)
	g := w.lease("worker", nil)
	conn := lockRows(t, url, "select from lease")
	must(t, w.DeleteDefinition(w.ctx, anybody, "sync.crm"))
	_, err = conn.Exec(t.Context(), "rollback")
	must(t, err)
	w.wantState(g.Job.ID, lessor.Leased)
}

// TestCircuitIsWaitedForBeforeTheGate: a change needs a circuit that another node has locked. That node gets the gate
// while the change waits, because it can end its transaction only then.
func TestCircuitIsWaitedForBeforeTheGate(t *testing.T) {
	for name, change := range map[string]func(w *world) error{
		"reset": func(w *world) error {
			_, err := w.ResetCircuit(w.ctx, anybody, "sync.crm")
			return err
		},
		"delete": func(w *world) error { return w.DeleteDefinition(w.ctx, anybody, "sync.crm") },
	} {
		t.Run(name, func(t *testing.T) {
			url := pool.Database(t)
			w := node(t, url, config(), nil)
			w.put(interval("sync.crm", 3600, nil))
			conn := lockRows(t, url, "select from circuit")
			// The watcher has no transaction open: within one, pg_stat_activity repeats its first answer.
			watcher := connect(t, url)
			done := make(chan error, 1)
			go func() { done <- change(w) }()
			w.eventually("waiting for the circuit", func() bool {
				var n int
				must(t, watcher.QueryRow(t.Context(), "select count(*) from pg_stat_activity"+
					" where wait_event_type = 'Lock' and datname = current_database()"+
					" and query ilike '%circuit%'").Scan(&n))
				return n > 0
			})
			_, err := conn.Exec(t.Context(), "set local lock_timeout = '200ms';"+
				" select pg_advisory_xact_lock(x'6c6573736f72'::bigint); commit")
			if err != nil {
				t.Errorf("the node that has the circuit cannot get the gate: %v", err)
				_, err = conn.Exec(t.Context(), "rollback")
				must(t, err)
			}
			must(t, <-done)
		})
	}
}

// TestDeletedDefinitionLeavesNoJobs: however many jobs of a deleted definition wait, all are cancelled, and those that
// run go on.
func TestDeletedDefinitionLeavesNoJobs(t *testing.T) {
	const thousands = 11
	test := func(w *world) {
		w.put(interval("sync.crm", 1, func(e *lessor.Envelope) {
			e.Overlap, e.Schedule = new("allow"), &lessor.ScheduleAsk{Type: new("cron"), Cron: new("* * * * *")}
		}))
		to := now()
		for range thousands {
			from := to.Add(-999 * time.Minute)
			_, err := w.Backfill(w.ctx, anybody, "sync.crm", from, to)
			must(w.t, err)
			to = from.Add(-time.Minute)
		}
		g := w.lease("worker", nil)
		must(w.t, w.DeleteDefinition(w.ctx, anybody, "sync.crm"))
		if n := depthOf(w.t, w); n != 0 {
			w.t.Errorf("%d jobs of the deleted definition are still queued", n)
		}
		w.mustComplete(g, "completed")
		w.noDrift()
	}
	t.Run("SQLite", func(t *testing.T) {
		inWorld(t, config(), func(_ *testing.T, w *world) { test(w) })
	})
	t.Run("PostgreSQL", func(t *testing.T) { test(node(t, pool.Database(t), config(), nil)) })
}
