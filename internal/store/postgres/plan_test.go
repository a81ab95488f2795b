package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// wholeReads are the statements whose purpose is to read a whole table.
var wholeReads = []*wire.Statement{
	readLanes, readNoticed, readQueue, readCohorts, readLeases, listLeases, listAgain, readTokens, readPosition,
	readChanges, trimDead, dropDead, dropOrphans, readRatings, readMessaged,
}

// tiny names the tables that have one row, or few rows for each node or operator.
var tiny = []string{"serving", "stream", "stripped", "token", "setting"}

// TestNoStatementReadsAWholeTable reads the plan of every statement that a store uses, in the way it is used: prepared
// once, generic, with the same settings. No plan may scan a table that grows, with up to a million jobs, and after a
// vacuum found the table empty.
func TestNoStatementReadsAWholeTable(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url, StatementTimeout: time.Minute})
	exercise(t, s)
	exerciseSchedules(t, s)
	prepareRest(t, s)
	c := s.writers[0]
	begins := map[string]string{}
	readAll(t, url, "select indexrelid::regclass::text, pg_get_indexdef(indexrelid, 1, false) from pg_index"+
		" join pg_class on oid = indrelid where relnamespace = 'public'::regnamespace", func(values [][]byte) {
		begins[string(values[0])] = string(values[1])
	})
	had := 0
	for _, jobs := range []int{0, 1000, 30_000, 1_000_000} {
		if jobs > 0 {
			fill(t, url, had+1, jobs)
			fillSchedules(t, url, jobs)
			had = jobs
		}
		checkPlans(t, c, begins, fmt.Sprintf("%d jobs", jobs))
		if jobs == 1000 {
			for _, table := range []string{
				"queue", "cohort", "cohort_left", "delayed", "lease", "done", "attempt",
				"idempotency", "change", "note", "report", "definition_job", "tick", "circuit", "alert", "audit",
				"output", "journal", "message",
			} {
				readAll(t, url, "delete from "+table, nil)
				readAll(t, url, "vacuum (truncate off) "+table, nil)
			}
			checkPlans(t, c, begins, "after a vacuum of empty tables")
		}
	}
}

// checkPlans fails the test for each prepared statement whose plan reads a whole table that grows.
func checkPlans(t *testing.T, c *wire.Conn, begins map[string]string, when string) {
	t.Helper()
	for f := range c.Prepared() {
		plan, ok := explain(t, c, f)
		if !ok {
			continue // BEGIN and the like
		}
		for _, bad := range scans(plan, begins) {
			if !slices.Contains(wholeReads, f.Stmt) && !slices.Contains(wholeScheduleReads, f.Stmt) {
				t.Errorf("%s: %s in the plan of\n%s\n%s", when, bad, f.Text(), plan)
			}
		}
	}
}

// scans returns the nodes of a plan that read a whole table that grows, or a whole index of one: without a condition on
// the index, or with one that leaves out the first column of the index.
func scans(plan string, begins map[string]string) (bad []string) {
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "->"))
		node, table, ok := strings.Cut(line, " on ")
		if !ok || !strings.HasPrefix(node, "Seq Scan") && !strings.HasPrefix(node, "Index") &&
			!strings.HasPrefix(node, "Bitmap") {
			continue
		}
		table, _, _ = strings.Cut(table, " ")
		_, index, _ := strings.Cut(node, " using ")
		bound := i+1 < len(lines) && strings.Contains(lines[i+1], "Index Cond:") &&
			strings.Contains(lines[i+1], begins[index])
		if !bound && !slices.Contains(tiny, table) {
			bad = append(bad, line)
		}
	}
	return bad
}

// explain returns the generic plan of a prepared statement.
func explain(t *testing.T, c *wire.Conn, f wire.Form) (string, bool) {
	t.Helper()
	described := c.Prepared()[f]
	nulls := strings.TrimSuffix(strings.Repeat("null,", len(described.ParamOIDs)), ",")
	if nulls != "" {
		nulls = "(" + nulls + ")"
	}
	c.Begin(begin, wire.Limits{Idle: time.Minute, Lock: time.Minute, Statement: time.Minute})
	if err := c.Send(); err != nil {
		t.Fatal(err)
	}
	results, err := c.Exec(t.Context(), "explain (costs off) execute "+described.Name+nulls)
	if _, back := c.Exec(t.Context(), "rollback"); back != nil {
		t.Fatal(back)
	}
	if err != nil {
		if word, _, _ := strings.Cut(f.Text(), " "); slices.Contains([]string{"begin", "commit", "rollback"}, word) {
			return "", false
		}
		t.Fatalf("explain %s: %v", f.Text(), err)
	}
	var lines []string
	for _, values := range results[0].Rows {
		lines = append(lines, string(values[0]))
	}
	return strings.Join(lines, "\n"), true
}

// fill stores the jobs with these numbers, in all places, and updates the statistics of the server.
func fill(t *testing.T, url string, from, to int) {
	t.Helper()
	const id = "lpad(to_hex(i), 32, '0')::uuid" // rising, like the ids of jobs
	turn := id + ", 1, i, 1, 5, 0, i, 3, i"
	//nolint:dupword // columns of one value
	for _, text := range []string{
		`insert into job (` + jobColumns + `)
			select ` + id + `, 1, i, '[]', null, 0, 5, 1000, 1000, 0, 0, 't', 'a', i, '{}'
			from generate_series(%[1]d, %[2]d) i`,
		`insert into queue (` + turnColumns + `) select ` + turn + ` from generate_series(%[1]d, %[2]d, 4) i`,
		`insert into cohort (first, queued_at, job, lane, max_attempts) select i, i, array[` + id + `], '{1}', '{5}'
			from generate_series(%[1]d, %[2]d, 64) i`,
		`insert into cohort_left (first, jobs) select i, case when i %% 1024 = 0 then 0 else 1 end
			from generate_series(%[1]d, %[2]d, 64) i`,
		`insert into delayed (` + waitingColumns + `) select ` + turn + `, 4000000000000 + i, 'queued'
			from generate_series(%[1]d + 1, %[2]d, 4) i`,
		`insert into lease (` + leaseColumns + `)
			select ` + id + `, ` + turn + `, md5('t')::uuid, null, 1, 'w' || i %% 100, null, null, 0, i, null, null,
			false, i, i, i, 60000, 0, 0, 0, 0, 0
			from generate_series(%[1]d + 2, %[2]d, 4) i`,
		`insert into done (` + doneColumns + `)
			select ` + turn + `, ` + id + `, 'w', i, i, i, 'completed', '', 'completed', 'w', '', null, 'completed',
			null
			from generate_series(%[1]d + 3, %[2]d, 4) i`,
		`insert into attempt (` + attemptColumns + `)
			select ` + turn + `, ` + id + `, 'w', i, i, i, 'failed', '', 'failed', 'w', '', null
			from generate_series(%[1]d, %[2]d, 10) i`,
		`insert into note (` + noteColumns + `) select ` + id + `, 1, false, i, 'queued', 'queued', 'a', 'r', null, 1, 1
			from generate_series(%[1]d, %[2]d, 20) i`,
		`insert into report (job, progress, message, checkpoint, at) select ` + id + `, 0.5, null, null, i
			from generate_series(%[1]d, %[2]d, 20) i`,
		`insert into output (` + outputColumns + `) select ` + id + `, 1, 'stdout', 0, 'x'
			from generate_series(%[1]d, %[2]d, 20) i`,
		`insert into journal (` + entryColumns + `) select ` + id + `, 1, 'k', '', i, 1, 1, 'x'
			from generate_series(%[1]d, %[2]d, 20) i`,
		`insert into message (` + messageColumns + `) select ` + id + `, 1, 'x', i, 'a', 'k'
			from generate_series(%[1]d, %[2]d, 20) i`,
		`insert into idempotency (` + keyColumns + `) select md5('t')::uuid, 'k' || i, ` + id + `, ''
			from generate_series(%[1]d, %[2]d, 20) i`,
		`insert into change (stream, n, at, void, data) select 0, i, i, false, ''
			from generate_series(%[1]d, %[2]d, 20) i`,
		`insert into lane (hash, ` + laneColumns + `)
			select ('h' || i)::bytea, md5('t')::uuid, 'c', 1, 't' || i, false, 1, '', ''
			from generate_series(%[1]d, %[2]d, 20) i`,
	} {
		readAll(t, url, fmt.Sprintf(text, from, to), nil)
	}
	readAll(t, url, "analyze", nil)
}

var errUndo = errors.New("the test rolls back")

// exercise uses every statement once, and rolls back.
func exercise(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	job, lease := lessor.JobID{UUID: lessor.UUID{1}}, lessor.LeaseID{UUID: lessor.UUID{2}}
	reads := func(v scheduler.View) []error {
		var errs []error
		for _, state := range append(lessor.States(), "") {
			_, err := v.List(ctx, scheduler.ListQuery{State: state, Type: "x", Tag: "x", After: &job, Limit: 1})
			errs = append(errs, err)
		}
		_, standings := v.Standings(ctx, []lessor.JobID{job})
		_, specs := v.Specs(ctx, []lessor.JobID{job})
		_, reports := v.Reports(ctx, []lessor.JobID{job})
		_, history := v.Histories(ctx, []lessor.JobID{job})
		_, ends := v.LeaseEnds(ctx, []lessor.LeaseID{lease})
		_, leases := v.LeaseList(ctx, scheduler.LeaseQuery{Limit: 1})
		_, workspace := v.WorkspaceLeases(ctx, "x")
		_, due := v.NextDue(ctx)
		_, lanes := v.LanesByID(ctx, []rules.LaneID{1})
		_, position := v.Position(ctx)
		_, changes := v.Changes(ctx, scheduler.Position{1: 0})
		_, setting := v.Setting(ctx, "x")
		_, tokens := v.Tokens(ctx)
		_, noticed := v.NoticedLanes(ctx)
		_, scanned := v.JobLanes(ctx, job, 1, func(rules.LaneID) {})
		return append(errs, noticed, scanned, standings, specs, reports, history, ends, leases, workspace, due, lanes,
			position, changes, setting, tokens,
			v.EachLane(ctx, func(rules.LaneID, rules.Lane) error { return nil }),
			v.EachQueued(ctx, func(rules.Turn) error { return nil }),
			v.EachLease(ctx, func(*rules.Held) error { return nil }))
	}
	if err := s.View(ctx, func(v scheduler.View) error { return errors.Join(reads(v)...) }); err != nil {
		t.Fatal(err)
	}
	err := s.Update(ctx, func(tx scheduler.Tx) error {
		_, keys := tx.TakeKeys(ctx, []scheduler.JobKey{{Key: scheduler.Key{Key: "x"}}})
		_, lanes := tx.Lanes(ctx, []rules.Lane{{Type: "x"}})
		_, peek := tx.Peek(ctx, []lessor.LeaseID{lease})
		_, leases := tx.Leases(ctx, []lessor.LeaseID{lease})
		_, due := tx.Due(ctx, 1, 1)
		_, lock := tx.Lock(ctx, []lessor.JobID{job})
		_, requested := tx.Requested(ctx, []scheduler.RequestRef{{Holder: rules.Holder{Worker: "x"}, RequestID: "x"}})
		_, strip := tx.Strip(ctx, 1, 1)
		_, purge := tx.Purge(ctx, 1, 1)
		_, token := tx.DeleteToken(ctx, lessor.TokenID{})
		_, dropped := tx.DropLanes(ctx, map[rules.LaneID]int64{1: 1})
		return errors.Join(dropped, tx.NoticeLanes(ctx, []rules.LaneID{1}, 1), keys,
			tx.FreeKeys(ctx, []scheduler.Key{{Key: "x"}}), lanes, peek, leases, due, lock, tx.Gate(ctx), requested,
			strip, purge, token,
			tx.SaveReports(ctx, []rules.Report{{Job: job}}), tx.Note(ctx, []rules.Note{{Job: job}}),
			tx.SaveSetting(ctx, "x", nil),
			tx.SaveSetting(ctx, "x", []byte("x")), tx.SaveToken(ctx, scheduler.Token{}),
			tx.Insert(ctx, []*rules.Spec{{ID: job}}), errUndo)
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
}

// prepareRest prepares the statements that would fail without rows, and those of views, on the first connection that
// writes.
func prepareRest(t *testing.T, s *Store) {
	t.Helper()
	c := s.writers[0]
	prepare := func(f wire.Form) {
		if c.Prepared()[f] == nil {
			if _, err := c.Prepare(f); err != nil {
				t.Fatalf("%s: %v", f.Text(), err)
			}
		}
	}
	for range cap(s.readers) {
		reader := <-s.readers
		s.readers <- reader
		if reader == nil {
			continue
		}
		for f := range reader.Prepared() {
			prepare(f)
		}
	}
	for _, stmt := range slices.Concat([]*wire.Statement{
		saveLeases, takeQueued, takeDelayed, takeDone, takeLeased, putQueue, putDelayed, putLease, putAttempt, putDone,
		putChange,
		saveServing, serve, lockServing, stayAlive, trimOwn, trimDead, dropDead, newestOwn, rate, readRatings,
		voidChange, readVoid,
		holdLeased, holdDelayed, seizeLeased, seizeDelayed, seizeQueued, seizeCohort, seizeDone, purgeDone, purgeKeys,
		putCohort, takeFromCohorts, checkPlaces, dropSpent, lockUnstripped, saveStripped, stripDone, nextBlocks, guard,
		noteWorkers, readWorkers, saveOutput, dropOutput, dropScattered, dropOrphans, readOutput, outputEnd,
		appendEntries, readEntries, readKnownEntries, readLastEntries,
		insertMessages, dropMessages, markSeen, readKeyed, readMessages, readMessaged,
	}, purges, strips, restOfSchedules) {
		prepare(wire.Form{Stmt: stmt, Shape: 1})
		prepare(wire.Form{Stmt: stmt, Shape: wire.AnyShape})
	}
	if len(c.Prepared()) < 150 {
		t.Fatalf("%d statements are prepared, want at least 150", len(c.Prepared()))
	}
}

// TestHeartbeatsAreHOT sends ten thousand heartbeats. The server counts the updates that changed no index.
func TestHeartbeatsAreHOT(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url})
	const leases, rounds = 500, 20
	ids := leaseJobs(t, s, leases)
	for range rounds {
		err := s.Update(t.Context(), func(tx scheduler.Tx) error { return saveBeats(t, tx, ids) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil { // a session reports its statistics when it ends
		t.Fatal(err)
	}
	var updates, hot int
	deadline := time.Now().Add(10 * time.Second)
	for ; updates < leases*rounds && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		readAll(t, url, "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'lease'",
			func(values [][]byte) {
				_, _ = fmt.Sscan(string(values[0]), &updates)
				_, _ = fmt.Sscan(string(values[1]), &hot)
			})
	}
	t.Logf("%d updates, %d of them HOT", updates, hot)
	if updates != leases*rounds || hot*100 < updates*95 {
		t.Errorf("%d updates, %d of them HOT; want %d, 95 %% of them HOT", updates, hot, leases*rounds)
	}
}

// leaseOf returns the i-th id of a lease for the job with this seq.
func leaseOf(s *Store, seq int64, i int) lessor.LeaseID {
	u := uuidAt(2, i)
	return s.Seal().LeaseID(seq, [10]byte(append(u[12:], u[:6]...)))
}

// leaseJobs stores n new jobs and leases them.
func leaseJobs(t *testing.T, s *Store, n int) (ids []lessor.LeaseID) {
	t.Helper()
	ctx := context.Background()
	err := s.Update(ctx, func(tx scheduler.Tx) error {
		lane, first, err := laneAndSeqs(ctx, tx, n)
		if err != nil {
			return err
		}
		var specs []*rules.Spec
		var queue, grants []scheduler.Move
		for i := range n {
			spec := &rules.Spec{
				ID: lessor.JobID{UUID: uuidAt(1, i)}, LaneID: lane, Seq: first + int64(i),
				MaxAttempts: 5,
			}
			turn := rules.Turn{Job: spec.ID, Lane: lane, Seq: spec.Seq, MaxAttempts: 5}
			h := rules.Grant(leaseOf(s, turn.Seq, i), turn, spec, "w1", time.Minute, tx.Now())
			specs, ids = append(specs, spec), append(ids, h.ID)
			queue = append(queue, scheduler.Move{To: rules.InQueue, Turn: turn})
			grants = append(grants, scheduler.Move{From: rules.InQueue, To: rules.Leased, Turn: turn, Held: h})
		}
		return errors.Join(tx.Insert(ctx, specs), tx.Move(ctx, queue), tx.Move(ctx, grants))
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// laneAndSeqs returns a lane, and the first of n consecutive seqs.
func laneAndSeqs(ctx context.Context, tx scheduler.Tx, n int) (lane rules.LaneID, first int64, err error) {
	lanes, err := tx.Lanes(ctx, []rules.Lane{{Type: "x", Units: 1}})
	if err == nil {
		lane = lanes[0]
		first, err = tx.Seqs(ctx, n)
	}
	return lane, first, err
}

func uuidAt(kind byte, n int) lessor.UUID {
	return lessor.UUID{0: kind, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
}
