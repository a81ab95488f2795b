package sqlite

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestCachesFollowTables ends random transactions in every way, and compares the caches with the tables.
func TestCachesFollowTables(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		s, err := Open(t.Context(), Config{Path: filepath.Join(dir, uuid().String()), Synchronous: "OFF"})
		if err != nil {
			r.Fatal(err)
		}
		defer s.Close()
		s.queueRows.few = rapid.IntRange(0, 8).Draw(r, "few")
		r.Repeat(map[string]func(*rapid.T){
			"transaction": func(r *rapid.T) {
				ends := []error{nil, nil, errEnough, scheduler.ErrMoved, scheduler.ErrBadCall}
				end := rapid.SampledFrom(ends).Draw(r, "end")
				err := s.Update(r.Context(), func(tx scheduler.Tx) error { return randomWork(r, tx, end) })
				if !errors.Is(err, end) {
					r.Fatal(err)
				}
			},
			"": func(r *rapid.T) { compareCaches(r, s) },
		})
	})
}

// randomWork submits jobs, grants leases, sends heartbeats and ends leases. It then returns end, or makes a call that
// fails with it.
func randomWork(r *rapid.T, tx scheduler.Tx, end error) error {
	ctx, locked := r.Context(), func(s *rules.Spec) { s.Lane.LockKey = s.ID.String() }
	specs := drafts(rapid.IntRange(0, 20).Draw(r, "jobs"), locked)
	if err := submit(ctx, tx, specs); err != nil {
		return err
	}
	if _, err := grant(ctx, tx, specs[len(specs)/2:]); err != nil {
		return err
	}
	var all []lessor.LeaseID
	if err := tx.EachLease(ctx, func(h *rules.Held) error {
		all = append(all, h.ID)
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b lessor.LeaseID) int { return slices.Compare(a.UUID[:], b.UUID[:]) })
	if err := beat(ctx, tx, all[:len(all)/2]); err != nil {
		return err
	}
	ends := all[:rapid.IntRange(0, len(all)).Draw(r, "ends")]
	for i, end := range []rules.End{completed, failed, released} {
		if err := finish(ctx, tx, ends[i*len(ends)/3:(i+1)*len(ends)/3], end); err != nil {
			return err
		}
	}
	if err := regrant(r, tx); err != nil {
		return err
	}
	switch {
	case errors.Is(end, scheduler.ErrMoved):
		return tx.SaveLeases(ctx, []*rules.Held{{ID: lessor.LeaseID{UUID: uuid()}}})
	case errors.Is(end, scheduler.ErrBadCall):
		twice := &rules.Spec{ID: lessor.JobID{UUID: uuid()}}
		return tx.Insert(ctx, []*rules.Spec{twice, twice})
	}
	return end
}

// regrant grants some of the queued jobs, beginning with those that were released most often.
func regrant(r *rapid.T, tx scheduler.Tx) error {
	var turns []rules.Turn
	if err := tx.EachQueued(r.Context(), func(turn rules.Turn) error {
		turns = append(turns, turn)
		return nil
	}); err != nil {
		return err
	}
	slices.SortStableFunc(turns, func(a, b rules.Turn) int { return b.Interruptions - a.Interruptions })
	moves := make([]scheduler.Move, rapid.IntRange(0, len(turns)).Draw(r, "grants"))
	for i := range moves {
		h := rules.Grant(lessor.LeaseID{UUID: uuid()}, turns[i], &rules.Spec{}, "w", time.Minute, tx.Now())
		moves[i] = scheduler.Move{From: rules.InQueue, To: rules.Leased, Turn: turns[i], Held: h}
	}
	return tx.Move(r.Context(), moves)
}

// compareCaches fails the test unless every cache of the store agrees with its table.
func compareCaches(r *rapid.T, s *Store) {
	if err := s.enter(r.Context()); err != nil {
		r.Fatal(err)
	}
	defer s.leave()
	v := view{conn: s.writer.conn}
	stored := newLeaseCache()
	if err := v.eachLeaseRow(stored.load); err != nil {
		r.Fatal(err)
	}
	same(r, "leases", s.leases.live, stored.live)
	same(r, "requests", s.leases.requests, stored.requests)
	lanes := map[rules.Lane]rules.LaneID{}
	if err := v.EachLane(r.Context(), func(id rules.LaneID, l rules.Lane) error {
		lanes[l] = id
		return nil
	}); err != nil {
		r.Fatal(err)
	}
	for id, l := range s.lanes.lanes {
		if lanes[*l] != id {
			r.Fatalf("lane %+v is cached as %d and stored as %d", l, id, lanes[*l])
		}
	}
	for l, id := range s.lanes.ids {
		if *s.lanes.lanes[id] != l {
			r.Fatalf("lane %+v has the number of %+v", l, s.lanes.lanes[id])
		}
	}
	same(r, "leases by seq", s.leases.index.live, stored.index.live)
	queueRows := newQueueRows()
	if err := queueRows.load(s.writer.conn); err != nil {
		r.Fatal(err)
	}
	same(r, "queued rows", s.queueRows.queued, queueRows.queued)
	left := newSeqSet()
	for _, set := range []seqSet{s.queueRows.fresh, s.queueRows.due} {
		for _, key := range set.keys() {
			for _, seq := range set.appendChunk(nil, key) {
				left.set(seq, true)
			}
		}
	}
	same(r, "left-over rows", left, queueRows.fresh)
	for id, spec := range s.specs.All() {
		got, err := v.spec(id)
		if err != nil {
			r.Fatal(err)
		}
		same(r, "specs", spec, got)
	}
}

func same[T any](r *rapid.T, what string, cached, stored T) {
	if !reflect.DeepEqual(cached, stored) { // cmp.Diff takes a hundred times as long
		unexported := cmp.Exporter(func(reflect.Type) bool { return true })
		r.Fatalf("the cache of %s differs from the table (-table +cache):\n%s", what,
			cmp.Diff(stored, cached, unexported))
	}
}

func TestLaneCacheIsBounded(t *testing.T) {
	s := openAt(t, Config{})
	for i := range maxLanes - 5 {
		s.lanes.register(rules.LaneID(maxLanes+i), rules.Lane{Type: "filler", Units: i})
	}
	lanes := make([]rules.Lane, 10)
	for i := range lanes {
		lanes[i] = rules.Lane{Type: "t", LockKey: fmt.Sprint(i)}
	}
	register := func() (ids []rules.LaneID) {
		update(t, s, func(tx scheduler.Tx) (err error) {
			ids, err = tx.Lanes(t.Context(), lanes)
			return err
		})
		return ids
	}
	first := register()
	if n, numbers := len(s.lanes.ids), len(s.lanes.lanes); n != 5 || numbers != 5 {
		t.Errorf("%d lanes and %d numbers are cached, want the 5 that came after the cache was full", n, numbers)
	}
	if again := register(); !slices.Equal(first, again) {
		t.Errorf("lanes that left the cache got the numbers %v, want %v as before", again, first)
	}
}

// TestGrantSoonAfterSubmissionReadsNothing: the grant finds the spec of the submission in memory, and drops it from
// there.
func TestGrantSoonAfterSubmissionReadsNothing(t *testing.T) {
	s := openAt(t, Config{})
	specs := drafts(1)
	ids := []lessor.JobID{specs[0].ID}
	find := func() (spec *rules.Spec) {
		update(t, s, func(tx scheduler.Tx) error {
			found, err := tx.Specs(t.Context(), ids)
			spec = found[ids[0]]
			return err
		})
		return spec
	}
	update(t, s, func(tx scheduler.Tx) error { return submit(t.Context(), tx, specs) })
	if find() != specs[0] {
		t.Error("the spec was read from the table, want the one in memory")
	}
	update(t, s, func(tx scheduler.Tx) error {
		_, err := grant(t.Context(), tx, specs)
		return err
	})
	if got := find(); got == specs[0] {
		t.Error("the spec is still in memory after the grant")
	} else if got == nil {
		t.Error("the spec cannot be read after the grant")
	}
	for id := range s.specs.All() {
		t.Errorf("the spec of job %s is in memory, want none", id)
	}
}

// TestPurgeLeavesNoRow counts the rows of the tables: no later purge would find a row that was left behind.
func TestPurgeLeavesNoRow(t *testing.T) {
	s := openAt(t, Config{})
	ctx := t.Context()
	specs := drafts(3, func(s *rules.Spec) { s.Lane.Definition = "nightly" })
	update(t, s, func(tx scheduler.Tx) error { return submit(ctx, tx, specs) })
	var held []*rules.Held
	update(t, s, func(tx scheduler.Tx) (err error) {
		held, err = grant(ctx, tx, specs)
		return err
	})
	update(t, s, func(tx scheduler.Tx) error {
		return finish(ctx, tx, leaseIDs(held), rules.End{Outcome: rules.OutcomeReleased})
	})
	update(t, s, func(tx scheduler.Tx) error {
		for i, h := range held {
			turn, job := h.Turn, h.Turn.Job
			done := &rules.Done{State: lessor.Cancelled, Attempt: rules.Attempt{Turn: turn, EndedAt: 1}}
			key := scheduler.JobKey{Key: scheduler.Key{Key: fmt.Sprint(i)}, KeyHolder: scheduler.KeyHolder{Job: job}}
			_, taken := tx.TakeKeys(ctx, []scheduler.JobKey{key})
			if err := errors.Join(
				taken, tx.Note(ctx, []rules.Note{{Job: job}}), tx.SaveReports(ctx, []rules.Report{{Job: job}}),
				tx.Move(ctx, []scheduler.Move{{From: rules.InQueue, To: rules.Ended, Turn: turn, Done: done}}),
			); err != nil {
				return err
			}
		}
		return nil
	})
	runScript(t, s.path, "update job set idempotency_key = (select key from idempotency where job = job.id)")
	tables := []string{"job", "idempotency", "attempt", "done", "note", "report", "definition_job"}
	rows := func() (all []int64) {
		for _, table := range tables {
			n, err := count(s.writer.conn, "select count(*) from "+table)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
		return all
	}
	if got := rows(); !slices.Equal(got, []int64{3, 3, 3, 3, 3, 3, 3}) {
		t.Fatalf("rows in %v before the purge: %v, want 3 each", tables, got)
	}
	update(t, s, func(tx scheduler.Tx) error {
		_, err := tx.Purge(ctx, 2, 10)
		return err
	})
	if got := rows(); !slices.Equal(got, make([]int64, len(tables))) {
		t.Errorf("rows in %v after the purge: %v, want none", tables, got)
	}
}

func TestCachesDoNotGrowWithPastJobs(t *testing.T) {
	s := openAt(t, Config{})
	for range 200 {
		held := leased(t, s, 50)
		update(t, s, func(tx scheduler.Tx) error { return finish(t.Context(), tx, leaseIDs(held), completed) })
		update(t, s, func(tx scheduler.Tx) error {
			_, err := tx.Purge(t.Context(), tx.Now().Add(time.Hour), 100)
			return err
		})
	}
	if n, m := len(s.leases.live), len(maps.Collect(s.specs.All())); n != 0 || m != 0 {
		t.Errorf("%d leases and %d specs are cached after every job was purged, want none", n, m)
	}
}
