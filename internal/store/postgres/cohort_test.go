package postgres

import (
	"errors"
	"slices"
	"testing"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// cohort queues n new jobs in one row, after edit has changed their moves, and returns the moves.
func cohort(t *testing.T, s *Store, n int, edit func([]scheduler.Move)) (moves []scheduler.Move, err error) {
	t.Helper()
	ctx := t.Context()
	err = s.Update(ctx, func(tx scheduler.Tx) error {
		lane, first, err := laneAndSeqs(ctx, tx, n)
		if err != nil {
			return err
		}
		var specs []*rules.Spec
		for i := range n {
			seq := first + int64(i)
			spec := &rules.Spec{
				ID: lessor.JobID{UUID: uuidAt(1, int(seq))}, LaneID: lane,
				Seq: seq, MaxAttempts: 5,
			}
			specs = append(specs, spec)
			moves = append(moves, scheduler.Move{To: rules.InQueue, Turn: rules.Turn{
				Job: spec.ID, Lane: lane, Seq: seq, MaxAttempts: 5, Steps: 1, QueuedAt: tx.Now(), RowRef: first,
			}})
		}
		edit(moves)
		return errors.Join(tx.Insert(ctx, specs), tx.Move(ctx, moves))
	})
	return moves, err
}

// TestCohortRefusesJobsThatAreNotNew: a job that a shared row cannot describe is refused.
func TestCohortRefusesJobsThatAreNotNew(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	for name, c := range map[string]struct {
		jobs int
		edit func([]scheduler.Move)
	}{
		"too many":       {cohortMax + 1, func([]scheduler.Move) {}},
		"a gap":          {8, func(m []scheduler.Move) { m[3].Turn.Seq += 100 }},
		"was leased":     {8, func(m []scheduler.Move) { m[3].Turn.Fence = 1 }},
		"has more steps": {8, func(m []scheduler.Move) { m[3].Turn.Steps = 2 }},
		"came later":     {8, func(m []scheduler.Move) { m[3].Turn.QueuedAt++ }},
	} {
		if _, err := cohort(t, s, c.jobs, c.edit); !errors.Is(err, scheduler.ErrBadCall) {
			t.Errorf("%s: got error %v, want %v", name, err, scheduler.ErrBadCall)
		}
	}
	if _, err := cohort(t, s, cohortMax, func([]scheduler.Move) {}); err != nil {
		t.Errorf("a cohort of the largest size: %v", err)
	}
}

// TestSpentCohortsAreDropped: the rows of a cohort are deleted after its last job was taken.
func TestSpentCohortsAreDropped(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url})
	moves, err := cohort(t, s, cohortMax, func([]scheduler.Move) {})
	if err != nil {
		t.Fatal(err)
	}
	rows := func() (n int) {
		t.Helper()
		s.tidied.spent = 0 // so that Serve drops empty cohorts now
		if _, err := s.Serve(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		readAll(t, url, "select 1 from cohort union all select 1 from cohort_left", func([][]byte) { n++ })
		return n
	}
	take := func(moves []scheduler.Move) {
		t.Helper()
		for i := range moves {
			moves[i].From, moves[i].To = rules.InQueue, rules.Delayed
			moves[i].Wait = rules.Wait{Until: 1, State: lessor.Queued}
		}
		if err := s.Update(t.Context(), func(tx scheduler.Tx) error {
			return tx.Move(t.Context(), moves)
		}); err != nil {
			t.Fatal(err)
		}
	}
	take(moves[1:])
	if n := rows(); n != 2 {
		t.Errorf("a cohort with one job left has %d rows, want 2", n)
	}
	take(moves[:1])
	if n := rows(); n != 0 {
		t.Errorf("a cohort without jobs has %d rows, want none", n)
	}
}

// TestConsecutiveNewJobsFormACohort: new jobs with consecutive seqs share a row if there are enough of them, and if
// they have neither a start time nor an earlier job that they resume.
func TestConsecutiveNewJobsFormACohort(t *testing.T) {
	later := func(s *rules.Spec) { s.RunAt = 1 }
	resumed := func(s *rules.Spec) { s.ResumedFrom = lessor.JobID{UUID: lessor.UUID{1}} }
	skip := func(s *rules.Spec) { s.Seq += 1000 }
	type run struct {
		jobs   int
		cohort int64
	}
	for name, c := range map[string]struct {
		jobs int
		edit map[int]func(*rules.Spec)
		want []run
	}{
		"none":        {},
		"too few":     {jobs: cohortMin - 1, want: []run{{cohortMin - 1, 0}}},
		"just enough": {jobs: cohortMin, want: []run{{cohortMin, 100}}},
		"more than one": {
			jobs: cohortMax + cohortMin, want: []run{{cohortMax, 100}, {cohortMin, 100 + cohortMax}},
		},
		"a rest": {jobs: cohortMax + 1, want: []run{{cohortMax, 100}, {1, 0}}},
		"one for later": {
			jobs: 20, edit: map[int]func(*rules.Spec){10: later}, want: []run{{10, 100}, {1, 0}, {9, 111}},
		},
		"one that is resumed": {
			jobs: 20, edit: map[int]func(*rules.Spec){0: resumed, 5: resumed}, want: []run{{6, 0}, {14, 106}},
		},
		"a gap": {jobs: 20, edit: map[int]func(*rules.Spec){10: skip}, want: []run{{10, 100}, {1, 0}, {9, 111}}},
	} {
		var specs []*rules.Spec
		for i := range c.jobs {
			s := &rules.Spec{Seq: 100 + int64(i)}
			if edit := c.edit[i]; edit != nil {
				edit(s)
			}
			specs = append(specs, s)
		}
		var want []int64
		for _, r := range c.want {
			want = append(want, slices.Repeat([]int64{r.cohort}, r.jobs)...)
		}
		formCohorts(specs)
		var got []int64
		for _, s := range specs {
			got = append(got, s.RowRef)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the jobs are in the cohorts %v, want %v", name, got, want)
		}
	}
}

// TestRepeatedInsertFormsNewCohorts: a transaction that is repeated inserts the same specs under other seqs, and
// fewer of them, which share no row any more.
func TestRepeatedInsertFormsNewCohorts(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	ctx := t.Context()
	specs := make([]*rules.Spec, cohortMin)
	for i := range specs {
		specs[i] = &rules.Spec{ID: lessor.JobID{UUID: uuidAt(1, i)}, MaxAttempts: 5}
	}
	insert := func(tx scheduler.Tx, specs []*rules.Spec) error {
		lane, first, err := laneAndSeqs(ctx, tx, len(specs))
		for i, spec := range specs {
			spec.LaneID, spec.Seq = lane, first+int64(i)
		}
		return errors.Join(err, tx.Insert(ctx, specs))
	}
	if err := s.Update(ctx, func(tx scheduler.Tx) error {
		return errors.Join(insert(tx, specs), errRefused)
	}); !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	if err := s.Update(ctx, func(tx scheduler.Tx) error {
		fewer := specs[:cohortMin-1]
		if err := insert(tx, fewer); err != nil {
			return err
		}
		var moves []scheduler.Move
		for _, spec := range fewer {
			moves = append(moves, scheduler.Move{To: rules.InQueue, Turn: rules.Turn{
				Job: spec.ID, Lane: spec.LaneID, Seq: spec.Seq, MaxAttempts: 5, Steps: 1, QueuedAt: tx.Now(),
				RowRef: spec.RowRef,
			}})
		}
		return tx.Move(ctx, moves)
	}); err != nil {
		t.Errorf("the repetition with fewer jobs: %v", err)
	}
}
