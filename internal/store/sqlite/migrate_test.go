package sqlite

import (
	"database/sql"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// beforeSchedules fills a database of version 1. Six jobs belong to a definition: 1 waits, 2 was granted once and
// ended, 3 was granted twice and ended, 4 was granted and later cancelled without a lease, 5 was cancelled and never
// granted, 6 failed twice and waits. Job 7 has no definition and is completed.
const beforeSchedules = `
insert into lane values (1, zeroblob(16), 'default', 1, 'mail', 0, 1, '', 'nightly'),
	(2, zeroblob(16), 'default', 1, 'mail', 0, 1, '', '');
insert into job (seq, id, lane, tags, max_runtime_ms, max_attempts, backoff_first_ms, backoff_max_ms, run_at, tick_at,
	trace_id, actor, created_at, payload)
	select n, unhex(format('%032x', n)), iif(n = 7, 2, 1), '[]', 0, 5, 0, 0, 0, 0,
	iif(n = 2, 'given', format('%032x', n)), 'a', 1, x'7b7d'
	from (select column1 as n from (values (1), (2), (3), (4), (5), (6), (7)));
insert into queue select 1, id, 1, 0, 5, 0, 0, 1, 1 from job where seq = 1;
insert into delayed select 6, id, 1, 2, 5, 0, 30, 6, 1, 99, 'failed' from job where seq = 6;
insert into done select seq, id, lane, 1, 5, 0, iif(seq = 5, 0, 40), 5, 1, 'completed',
	unhex(format('%032x', 100 + seq)), 'w', 400, 0, 500, 'completed', '', '', 'a', '', null
	from job where seq in (2, 3, 4, 5, 7);
update done set state = 'cancelled', outcome = 'cancelled', lease = null, granted_at = 0 where seq in (4, 5);
insert into attempt select id, 1, seq, 1, 5, 0, fence, 3, 1,
	unhex(format('%032x', 1000 * seq + fence)), 'w', fence * 10, 0, fence * 10 + 5, outcome, '', '', 'a', ''
	from job join (select column1 as n, column2 as fence, column3 as outcome
		from (values (3, 30, 'released'), (4, 30, 'failed'), (6, 20, 'failed'), (6, 30, 'expired'))) on n = seq;
`

// databaseAt makes a database of a version of the schema, runs the script fill on it, and returns its path.
func databaseAt(t *testing.T, version int64, fill string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "lessor.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(fill); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTenantKeysMigrationKeepsTicksAndAlerts: ticks and alerts from before the migration are there, and another
// tenant may have ones of the same names.
func TestTenantKeysMigrationKeepsTicksAndAlerts(t *testing.T) {
	path := databaseAt(t, 7, `
insert into tick values ('nightly', 10, zeroblob(16), 'circuitOpen', 'why',
		x'0123456789abcdef0123456789abcdef', 1, 2, 3),
	('nightly', 20, zeroblob(16), 'skipped', '', null, 0, 0, 0);
insert into alert values (x'00000000000000000000000000000001', 'stale', 'nightly', zeroblob(16), 'm', 5, 0);`)
	s := openAt(t, Config{Path: path})
	run := lessor.JobID{
		UUID: lessor.UUID{
			0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
		},
	}
	ticks := []rules.TickRow{
		{
			Definition: "nightly", At: 10, Outcome: lessor.TickCircuitOpen, Reason: "why", Run: run, From: 1, To: 2,
			Count: 3,
		},
		{Definition: "nightly", At: 20, Outcome: lessor.TickSkipped},
	}
	alert := lessor.Alert{
		ID: lessor.AlertID{UUID: lessor.UUID{15: 1}}, Kind: lessor.AlertStale, Subject: "nightly", Message: "m",
		RaisedAt: 5, Count: 1,
	}
	other := lessor.TenantID{UUID: lessor.UUID{7}}
	update(t, s, func(tx scheduler.Tx) error {
		theirs, their := ticks[0], alert
		theirs.Tenant, their.TenantID, their.ID = other, other, lessor.AlertID{UUID: lessor.UUID{15: 2}}
		if err := tx.SaveTicks(t.Context(), []rules.TickRow{theirs}); err != nil {
			return err
		}
		return tx.SaveAlerts(t.Context(), []lessor.Alert{their})
	})
	inView(t, s, func(v scheduler.View) error {
		got, err := v.TickList(t.Context(), scheduler.TickQuery{Definition: "nightly", Limit: 10})
		if d := cmp.Diff(ticks, got); d != "" || err != nil {
			t.Errorf("ticks, %v (-want +got):\n%s", err, d)
		}
		open, err := v.OpenAlert(t.Context(), lessor.AlertStale, "nightly", lessor.TenantID{})
		if d := cmp.Diff(&alert, open); d != "" {
			t.Errorf("alert (-want +got):\n%s", d)
		}
		return err
	})
}

// TestScheduleMigrationKeepsJobs: the new tables say about older jobs what they would say if they had always existed.
func TestScheduleMigrationKeepsJobs(t *testing.T) {
	path := databaseAt(t, 1, beforeSchedules)
	s := openAt(t, Config{Path: path})
	inView(t, s, func(v scheduler.View) error {
		page, err := v.List(t.Context(), scheduler.ListQuery{Definition: "nightly", Limit: 10})
		if err != nil {
			return err
		}
		started := map[byte]lessor.Instant{}
		for _, standing := range page.Standings {
			started[standing.Spec.ID.UUID[15]] = standing.StartedAt
		}
		if d := cmp.Diff(map[byte]lessor.Instant{1: 0, 2: 400, 3: 300, 4: 300, 5: 0, 6: 200}, started); d != "" {
			t.Errorf("first grants of the definition's jobs (-want +got):\n%s", d)
		}
		job := func(n byte) lessor.JobID { return lessor.JobID{UUID: lessor.UUID{15: n}} }
		open, err := v.OpenRuns(t.Context(), []*rules.Definition{{ID: "nightly"}}, 10)
		if d := cmp.Diff(map[string][]scheduler.OpenRun{"nightly": {{Job: job(1)}, {Job: job(6), Claimed: true}}},
			open); d != "" {
			t.Errorf("open runs (-want +got):\n%s", d)
		}
		if err != nil {
			return err
		}
		page, err = v.List(t.Context(), scheduler.ListQuery{Trace: "given", Limit: 10})
		if len(page.Standings) != 1 || page.Standings[0].Spec.ID != job(2) {
			t.Errorf("jobs of the trace that was given: %+v, want the second", page.Standings)
		}
		return err
	})
	name := filepath.Join(t.TempDir(), "copy.db")
	if err := s.copyInto(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if n, err := Verify(t.Context(), name); n != 7 || err != nil {
		t.Errorf("a copy of the migrated database: %d jobs, %v; want 7 and no error", n, err)
	}
	update(t, s, func(tx scheduler.Tx) error { // an older job can be moved
		turn := rules.Turn{Job: lessor.JobID{UUID: lessor.UUID{15: 1}}, Lane: 1, Seq: 1}
		done := &rules.Done{
			State: lessor.Cancelled, Attempt: rules.Attempt{Turn: turn, EndedAt: 1, Outcome: rules.OutcomeCancelled},
		}
		return tx.Move(t.Context(), []scheduler.Move{{From: rules.InQueue, To: rules.Ended, Turn: turn, Done: done}})
	})
}

// beforeTaker fills a database of version 4 with a job that is leased and one that has ended, as they were granted
// then: the id of a lease ends with the seq of its job.
const beforeTaker = `
insert into lane values (1, zeroblob(16), 'default', 1, 'mail', 0, 1, '', '');
insert into job (seq, id, lane, tags, max_runtime_ms, max_attempts, backoff_first_ms, backoff_max_ms, run_at, tick_at,
	trace_id, actor, created_at, payload)
	select n, unhex(format('%032x', n)), 1, '[]', 0, 5, 0, 0, 0, 0, '', 'a', 1, x'7b7d'
	from (select column1 as n from (values (1), (2)));
insert into lease (n, id, job, lane, seq, attempt, max_attempts, interruptions, fence, steps, queued_at,
	tenant, units, worker, request_id, max_runtime_ms, issued_at, granted_ttl_ms)
	select 9, unhex('01990000000070008000000000000001'), id, 1, 1, 1, 5, 0, 7, 2, 1, zeroblob(16), 1,
	'w', 'r', 0, 1, 60000
	from job where seq = 1;
insert into done (seq, job, lane, attempt, max_attempts, interruptions, fence, steps, queued_at,
	state, lease, worker, granted_at, first_beat_at, ended_at, outcome, said, reason, actor, error)
	select 2, id, 1, 1, 5, 0, 7, 3, 1, 'completed', unhex('01990000000070008000000000000002'), 'w', 1, 0, 2,
	'completed', 'completed', 'completed', 'w', '' from job where seq = 2;
`

// TestTakerMigrationKeepsLeases: leases from before the migration stay valid, and are found by their ids.
func TestTakerMigrationKeepsLeases(t *testing.T) {
	path := databaseAt(t, 4, beforeTaker)
	s := openAt(t, Config{Path: path})
	live := lessor.LeaseID{UUID: lessor.UUID{0x01, 0x99, 6: 0x70, 8: 0x80, 15: 1}}
	over := lessor.LeaseID{UUID: lessor.UUID{0x01, 0x99, 6: 0x70, 8: 0x80, 15: 2}}
	update(t, s, func(tx scheduler.Tx) error {
		held, err := tx.Leases(t.Context(), []lessor.LeaseID{live})
		if h := held[live]; h == nil || h.Taker != "" || h.Bound {
			t.Errorf("the lease from before the migration is %+v, want it without a taker and not bound", held)
		}
		ends, err2 := tx.LeaseEnds(t.Context(), []lessor.LeaseID{over})
		if ends[over].Outcome != rules.OutcomeCompleted {
			t.Errorf("the end of the lease from before the migration is %+v, want completed", ends)
		}
		return errors.Join(err, err2)
	})
	key := s.Seal().LeaseID(7, [10]byte{})
	if again := restarted(t, s); again.Seal().LeaseID(7, [10]byte{}) != key {
		t.Error("the same seq is sealed differently after a restart: the key has changed")
	}
}

// TestJournalMigrationKeepsEntries: entries from before the migration are found, in order and by key.
func TestJournalMigrationKeepsEntries(t *testing.T) {
	path := databaseAt(t, 15, `
insert into job (seq, id, lane, tags, max_runtime_ms, max_attempts, backoff_first_ms, backoff_max_ms, run_at, tick_at,
	trace_id, actor, created_at) values
	(7, x'00000000000000000000000000000002', 1, '[]', 0, 5, 0, 0, 0, 0, 't', 'a', 1),
	(8, x'00000000000000000000000000000001', 1, '[]', 0, 5, 0, 0, 0, 0, 't', 'a', 1);
insert into journal (job, n, key, kind, at, fence, bytes, data) values
	(x'00000000000000000000000000000001', 1, 'a', 'step', 3, 4, 70, x'31'),
	(x'00000000000000000000000000000002', 1, 'a', '', 5, 6, 71, x'32'),
	(x'00000000000000000000000000000001', 2, 'b', '', 7, 8, 140, x'33');`)
	s := openAt(t, Config{Path: path})
	job := lessor.JobID{UUID: lessor.UUID{15: 1}}
	want := []rules.Entry{
		{
			Job: job, Size: rules.JournalSize{Entries: 1, Bytes: 70},
			JournalEntry: lessor.JournalEntry{N: 1, Key: "a", Kind: "step", At: 3, Fence: 4, Data: []byte("1")},
		},
		{
			Job: job, Size: rules.JournalSize{Entries: 2, Bytes: 140},
			JournalEntry: lessor.JournalEntry{N: 2, Key: "b", At: 7, Fence: 8, Data: []byte("3")},
		},
	}
	update(t, s, func(tx scheduler.Tx) error {
		got, err := tx.Entries(t.Context(), job, 0, 10)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the journal from before the migration (-want +got):\n%s", diff)
		}
		ref := scheduler.EntryRef{Job: job, Key: "b"}
		known, err2 := tx.KnownEntries(t.Context(), []scheduler.EntryRef{ref})
		if diff := cmp.Diff(want[1], known[ref]); diff != "" {
			t.Errorf("an entry from before the migration, found by its key (-want +got):\n%s", diff)
		}
		return errors.Join(err, err2)
	})
}
