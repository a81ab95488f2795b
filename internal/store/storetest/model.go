package storetest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// likeTheModel runs random sequences of the scheduler's steps, a few in a transaction, some of which fail. After each
// it compares the store with a map.
func likeTheModel(b *bed) {
	rapid.Check(b.T, func(r *rapid.T) {
		b.count++
		m := &model{
			bed: b, definition: fmt.Sprintf("sequence-%d", b.count),
			jobs: map[lessor.JobID]rules.Standing{}, failures: map[lessor.JobID]string{},
		}
		r.Repeat(map[string]func(*rapid.T){
			"transaction": m.transaction,
			"":            m.compare,
		})
	})
}

// model is the expected content of the store for the jobs of one sequence.
type model struct {
	bed        *bed
	definition string // that some jobs are of
	jobs       map[lessor.JobID]rules.Standing
	failures   map[lessor.JobID]string // the error of the last attempt that failed, and after which the job went on
	again      bool                    // the store has refused a transaction, as it may under load, for another try
}

// step is one change of a job by the scheduler, decided by package rules.
type step struct {
	name  string
	fits  func(*rules.Standing) bool
	apply func(*model, scheduler.Tx, *rules.Standing) error
}

var steps = []step{
	{"grant", at(rules.InQueue), (*model).grant},
	{"beat", at(rules.Leased), (*model).beat},
	{"complete", at(rules.Leased), ending(completed)},
	{"fail", at(rules.Leased), ending(failed)},
	{"fail for good", at(rules.Leased), ending(fatal)},
	{"lapse", at(rules.Leased), ending(expired)},
	{"release", at(rules.Leased), ending(released)},
	{
		"delay", at(rules.Leased), ending(rules.End{
			Outcome: rules.OutcomeReleased, Said: rules.SaidReleased, Reason: "released", Delay: time.Hour,
		}),
	},
	{"ask", at(rules.Leased), ending(asked)},
	{"promote", at(rules.Delayed), (*model).promote},
	{"cancel", at(rules.InQueue, rules.Delayed), changing(cancel)},
	{"retry", func(s *rules.Standing) bool {
		return s.Place == rules.Ended && s.Done.State != lessor.Completed || s.Place == rules.Delayed &&
			s.Wait.State != lessor.Queued && s.Wait.State != lessor.Waiting
	}, changing(retry)},
	{"report", at(rules.Leased), (*model).report},
}

func at(places ...rules.Place) func(*rules.Standing) bool {
	return func(s *rules.Standing) bool { return slices.Contains(places, s.Place) }
}

// transaction submits up to two jobs, takes a few steps, and commits or fails.
func (m *model) transaction(r *rapid.T) {
	jobs, failures := maps.Clone(m.jobs), maps.Clone(m.failures)
	fails := rapid.IntRange(0, 4).Draw(r, "fails") == 0
	err := m.bed.Update(m.bed.Context(), func(tx scheduler.Tx) error {
		for range rapid.IntRange(0, 2).Draw(r, "submissions") {
			if err := m.submit(tx, rapid.Bool().Draw(r, "later"),
				rapid.Bool().Draw(r, "of the definition")); err != nil {
				return err
			}
		}
		for range rapid.IntRange(0, 6).Draw(r, "steps") {
			if err := m.step(r, tx); err != nil {
				return err
			}
		}
		if fails {
			return errTest
		}
		return nil
	})
	switch {
	case fails && errors.Is(err, errTest):
		m.jobs, m.failures = jobs, failures
	case errors.Is(err, scheduler.ErrAgain) && !m.again: // seldom: a second one in a sequence is a fault
		m.jobs, m.failures, m.again = jobs, failures, true
	case err != nil:
		r.Fatal(err)
	}
}

func (m *model) step(r *rapid.T, tx scheduler.Tx) error {
	ids := slices.SortedFunc(maps.Keys(m.jobs), olderJob)
	if len(ids) == 0 {
		return nil
	}
	s := m.jobs[rapid.SampledFrom(ids).Draw(r, "job")]
	possible := slices.DeleteFunc(slices.Clone(steps), func(st step) bool { return !st.fits(&s) })
	if len(possible) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(possible)-1).Draw(r, "step")
	if err := possible[i].apply(m, tx, &s); err != nil {
		return fmt.Errorf("%s: %w", possible[i].name, err)
	}
	m.jobs[s.Spec.ID] = s
	return nil
}

func olderJob(a, b lessor.JobID) int { return slices.Compare(a.UUID[:], b.UUID[:]) }

func (m *model) submit(tx scheduler.Tx, waits, defined bool) error {
	spec := m.bed.draft(func(s *rules.Spec) {
		if waits {
			later(s)
		}
		if defined {
			s.Lane.Definition = m.definition
		}
	})
	if err := insert(m.bed.Context(), tx, spec); err != nil {
		return err
	}
	move := enqueue(spec, tx.Now())
	m.jobs[spec.ID] = rules.Standing{Spec: spec, Place: move.To, Turn: move.Turn, Wait: move.Wait}
	return tx.Move(m.bed.Context(), []scheduler.Move{move})
}

func (m *model) grant(tx scheduler.Tx, s *rules.Standing) error {
	move := m.bed.grantMove(s.Spec, s.Turn, "w1", tx.Now())
	s.Place, s.Turn, s.Held = rules.Leased, move.Held.Turn, move.Held
	if s.StartedAt == 0 {
		s.StartedAt = tx.Now()
	}
	return tx.Move(m.bed.Context(), []scheduler.Move{move})
}

func (m *model) beat(tx scheduler.Tx, s *rules.Standing) error {
	h := *s.Held
	if err := rules.Beat(&h, rules.Hand{Holder: h.Holder(), Token: h.Token}, 0, tx.Now(), tx.Serving()); err != nil {
		return err
	}
	s.Held = &h
	return tx.SaveLeases(m.bed.Context(), []*rules.Held{&h})
}

func ending(e rules.End) func(*model, scheduler.Tx, *rules.Standing) error {
	return func(m *model, tx scheduler.Tx, s *rules.Standing) error {
		move, err := endMove(s.Held, e, tx.Now())
		if err != nil {
			return err
		}
		m.apply(s, move)
		return tx.Move(m.bed.Context(), []scheduler.Move{move})
	}
}

func (m *model) promote(tx scheduler.Tx, s *rules.Standing) error {
	move := scheduler.Move{From: rules.Delayed, To: rules.InQueue, Turn: rules.Promote(s.Turn, s.Wait, tx.Now())}
	m.apply(s, move)
	return tx.Move(m.bed.Context(), []scheduler.Move{move})
}

func changing(
	decide func(*rules.Standing, lessor.Instant) (rules.Change, error),
) func(*model, scheduler.Tx, *rules.Standing) error {
	return func(m *model, tx scheduler.Tx, s *rules.Standing) error {
		c, err := decide(s, tx.Now())
		if err != nil {
			return err
		}
		move := changeMove(s, c)
		m.apply(s, move)
		return tx.Move(m.bed.Context(), []scheduler.Move{move})
	}
}

func (m *model) report(tx scheduler.Tx, s *rules.Standing) error {
	s.Report = &rules.Report{Job: s.Spec.ID, Progress: new(float64(s.Turn.Steps)), At: tx.Now()}
	return tx.SaveReports(m.bed.Context(), []rules.Report{*s.Report})
}

// apply applies a move to a standing.
func (m *model) apply(s *rules.Standing, move scheduler.Move) {
	if a := move.Attempt; a != nil && (a.Outcome == rules.OutcomeFailed || a.Outcome == rules.OutcomeExpired) {
		m.failures[s.Spec.ID], s.ErrorLease = a.LastError(), a.Lease
	}
	s.Place, s.Turn, s.Wait, s.Done, s.Held = move.To, move.Turn, move.Wait, move.Done, nil
	s.LastError = m.failures[s.Spec.ID]
	if move.Done != nil {
		s.Turn, s.LastError = move.Done.Attempt.Turn, move.Done.Attempt.LastError()
	}
}

// compare compares the store with the model.
func (m *model) compare(r *rapid.T) {
	err := m.bed.View(m.bed.Context(), func(v scheduler.View) error {
		got, err := v.Standings(m.bed.Context(), slices.Collect(maps.Keys(m.jobs)))
		if err != nil {
			return err
		}
		want := map[lessor.JobID]*rules.Standing{}
		for id, s := range m.jobs {
			want[id] = &s
			if got := got[id]; got != nil && got.Place == rules.Leased && got.StartedAt == 0 {
				got.StartedAt = got.Held.IssuedAt // a store need not know it during the first attempt
			}
			if got := got[id]; got != nil && got.Place == rules.InQueue {
				want[id].Turn.RowRef = got.Turn.RowRef // nor refer to rows
			}
		}
		m.compareRuns(r, v)
		if reflect.DeepEqual(got, want) { // which takes a hundredth of the time
			return nil
		}
		if d := cmp.Diff(want, got, asStored); d != "" {
			r.Fatalf("the store is not like the model (-model +store):\n%s", d)
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
}

// compareRuns compares the open runs of the definition with the model.
func (m *model) compareRuns(r *rapid.T, v scheduler.View) {
	var want []scheduler.OpenRun
	for _, id := range slices.SortedFunc(maps.Keys(m.jobs), olderJob) {
		if s := m.jobs[id]; s.Spec.Lane.Definition != "" && s.Place != rules.Ended {
			want = append(want, scheduler.OpenRun{Job: id, Claimed: s.Turn.Fence != 0})
		}
	}
	got, err := v.OpenRuns(m.bed.Context(), []*rules.Definition{{ID: m.definition, Tenant: acme}}, len(m.jobs)+1)
	if !slices.Equal(got[m.definition], want) || err != nil {
		r.Fatalf("open runs are not like the model, or %v (-model +store):\n%s", err, cmp.Diff(want, got[m.definition]))
	}
}
