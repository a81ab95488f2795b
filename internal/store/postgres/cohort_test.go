package postgres

import (
	"errors"
	"testing"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// cohort queues jobs together, edits their moves, and returns them.
func cohort(t *testing.T, s *Store, n int, edit func([]scheduler.Move)) (moves []scheduler.Move, err error) {
	t.Helper()
	ctx := t.Context()
	err = s.Update(ctx, func(tx scheduler.Tx) error {
		lane, first, err := line(ctx, tx, n)
		if err != nil {
			return err
		}
		var specs []*rules.Spec
		for i := range n {
			seq := first + int64(i)
			spec := &rules.Spec{ID: lessor.JobID{UUID: lessor.UUID{1, byte(seq >> 8), byte(seq)}}, LaneID: lane, Seq: seq, MaxAttempts: 5}
			specs = append(specs, spec)
			moves = append(moves, scheduler.Move{To: rules.InQueue, Turn: rules.Turn{
				Job: spec.ID, Lane: lane, Seq: seq, MaxAttempts: 5, Steps: 1, QueuedAt: tx.Now(), Cohort: first,
			}})
		}
		edit(moves)
		return errors.Join(tx.Insert(ctx, specs), tx.Move(ctx, moves))
	})
	return moves, err
}

// TestCohortIsOfNewJobs: what a row that is shared cannot tell is refused.
func TestCohortIsOfNewJobs(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	for name, c := range map[string]struct {
		jobs int
		edit func([]scheduler.Move)
	}{
		"too many":         {rules.CohortMax + 1, func([]scheduler.Move) {}},
		"a gap":            {8, func(m []scheduler.Move) { m[3].Turn.Seq += 100 }},
		"was leased":       {8, func(m []scheduler.Move) { m[3].Turn.Fence = 1 }},
		"was told of more": {8, func(m []scheduler.Move) { m[3].Turn.Steps = 2 }},
		"came later":       {8, func(m []scheduler.Move) { m[3].Turn.QueuedAt++ }},
	} {
		if _, err := cohort(t, s, c.jobs, c.edit); !errors.Is(err, scheduler.ErrBadCall) {
			t.Errorf("%s: got error %v, want %v", name, err, scheduler.ErrBadCall)
		}
	}
	if _, err := cohort(t, s, rules.CohortMax, func([]scheduler.Move) {}); err != nil {
		t.Errorf("a full one: %v", err)
	}
}

// TestSpentCohortsAreDropped: a cohort goes with its last job.
func TestSpentCohortsAreDropped(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url})
	moves, err := cohort(t, s, rules.CohortMax, func([]scheduler.Move) {})
	if err != nil {
		t.Fatal(err)
	}
	rows := func() (n int) {
		t.Helper()
		s.tidied.spent = 0 // it is time
		if _, err := s.Serve(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		readAll(t, url, "select 1 from cohort union all select 1 from cohort_left", func([][]byte) { n++ })
		return n
	}
	take := func(moves []scheduler.Move) {
		t.Helper()
		for i := range moves {
			moves[i].From, moves[i].To, moves[i].Wait = rules.InQueue, rules.Delayed, rules.Wait{Until: 1, State: lessor.Queued}
		}
		if err := s.Update(t.Context(), func(tx scheduler.Tx) error { return tx.Move(t.Context(), moves) }); err != nil {
			t.Fatal(err)
		}
	}
	take(moves[1:])
	if n := rows(); n != 2 {
		t.Errorf("with a job left it has %d rows, want 2", n)
	}
	take(moves[:1])
	if n := rows(); n != 0 {
		t.Errorf("without a job it has %d rows", n)
	}
}
