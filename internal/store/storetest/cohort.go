package storetest

import (
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// cohortMax is the largest number of jobs that a store keeps in one row.
const cohortMax = 64

// cohorts stores n jobs in one transaction, and returns their turns.
func (b *bed) cohorts(n int) (specs []*rules.Spec, turns []rules.Turn) {
	b.Helper()
	for range n {
		specs = append(specs, b.draft())
	}
	b.update(func(tx scheduler.Tx) error {
		if err := insert(b.Context(), tx, specs...); err != nil {
			return err
		}
		var moves []scheduler.Move
		for _, s := range specs {
			m := enqueue(s, tx.Now())
			m.Turn.RowRef = s.RowRef
			moves, turns = append(moves, m), append(turns, m.Turn)
		}
		return tx.Move(b.Context(), moves)
	})
	return specs, turns
}

// queue reads the whole queue.
func (b *bed) queue() map[lessor.JobID]rules.Turn {
	b.Helper()
	all := map[lessor.JobID]rules.Turn{}
	b.view(func(v scheduler.View) error {
		return v.EachQueued(b.Context(), func(t rules.Turn) error {
			if _, twice := all[t.Job]; twice {
				b.Fatalf("job %s is in the queue twice", t.Job)
			}
			all[t.Job] = t
			return nil
		})
	})
	return all
}

// cohortComesAndGoes takes jobs out of cohorts in several orders until none is left, over restarts.
func cohortComesAndGoes(b *bed) {
	const n = 2*cohortMax + 3
	specs, turns := b.cohorts(n)
	left := map[lessor.JobID]rules.Turn{}
	for _, t := range turns {
		left[t.Job] = t
	}
	check := func() {
		b.Helper()
		b.same("the queue", b.queue(), left)
		for i, s := range specs {
			st := b.standing(s.ID)
			if _, waits := left[s.ID]; waits != (st.Place == rules.InQueue) {
				b.Fatalf("job %d is at place %d", i, st.Place)
			}
			if st.Place == rules.InQueue {
				b.same("turn", st.Turn, turns[i])
			}
		}
		b.onePlaceEach()
	}
	check()
	for _, i := range []int{0, cohortMax - 1, cohortMax, n - 1, 7} { // with their turns as read
		b.grant(specs[i], "w1")
		delete(left, specs[i].ID)
	}
	b.change(specs[40].ID, cancel)
	delete(left, specs[40].ID)
	check()
	b.reopen()
	check()
	b.update(func(tx scheduler.Tx) error { // with their turns as written, all in one call
		var moves []scheduler.Move
		for i, s := range specs {
			if _, ok := left[s.ID]; ok {
				moves = append(moves, b.grantMove(s, turns[i], "w1", tx.Now()))
			}
		}
		return tx.Move(b.Context(), moves)
	})
	clear(left)
	check()
}

// cohortJobIsTakenOnce: a move of a job that is no longer queued changes nothing, nor do the other moves of that call.
func cohortJobIsTakenOnce(b *bed) {
	specs, turns := b.cohorts(10)
	b.grant(specs[3], "w1")
	before := b.queue()
	for _, wrong := range [][]int{{3}, {2, 3, 4}} {
		err := b.Update(b.Context(), func(tx scheduler.Tx) error {
			var moves []scheduler.Move
			for _, i := range wrong {
				moves = append(moves, b.grantMove(specs[i], turns[i], "w2", tx.Now()))
			}
			return tx.Move(b.Context(), moves)
		})
		b.wants(err, scheduler.ErrMoved)
		b.same("the queue", b.queue(), before)
	}
	b.grant(specs[2], "w2")
}

// cohortJobComesBack: a job that was granted comes back with a row of its own, and leaves the cohort as it is.
func cohortJobComesBack(b *bed) {
	specs, turns := b.cohorts(10)
	m := b.end(b.grant(specs[5], "w1"), released)
	if m.Turn.RowRef != 0 {
		b.Fatalf("a job that was granted refers to row %d", m.Turn.RowRef)
	}
	want := map[lessor.JobID]rules.Turn{}
	for _, t := range turns {
		want[t.Job] = t
	}
	want[specs[5].ID] = m.Turn
	b.same("the queue", b.queue(), want)
	b.same("turn", b.standing(specs[5].ID).Turn, m.Turn)
	b.reopen()
	b.grant(specs[5], "w2")
	b.end(b.grant(specs[6], "w2"), fatal)
	b.change(specs[6].ID, retry)
	b.at(specs[6].ID, rules.InQueue, lessor.Queued, b.standing(specs[6].ID).Turn)
	b.grant(specs[6], "w3")
}

// cohortListed: queued jobs are listed newest first, wherever their rows are.
func cohortListed(b *bed) {
	var want []lessor.JobID
	for i := range 4 {
		specs, _ := b.cohorts(cohortMax + 5)
		for j, s := range specs {
			if j%7 == i {
				b.grant(s, "w1")
				continue
			}
			want = append(want, s.ID)
		}
		want = append(want, b.queued().ID, b.queued().ID, b.queued(later).ID)
	}
	slices.Reverse(want)
	for _, limit := range []int{1, 50, 1000} {
		var got []lessor.JobID
		b.view(func(v scheduler.View) error {
			for _, s := range b.list(v, scheduler.ListQuery{State: lessor.Queued, Limit: limit}) {
				got = append(got, s.Spec.ID)
			}
			return nil
		})
		b.same(fmt.Sprintf("queued jobs, %d a page", limit), got, want)
	}
}

// cohortOfAnother: two nodes take jobs out of one cohort, by their turns as written and as read, and none twice.
func cohortOfAnother(a, b *bed) {
	specs, turns := a.cohorts(20)
	left := a.queue()
	for i, s := range specs[:10] {
		node := []*bed{a, b}[i%2]
		node.grant(s, "w1")
		delete(left, s.ID)
	}
	for i, node := range []*bed{b, a} { // jobs that the other node has taken
		err := node.Update(node.Context(), func(tx scheduler.Tx) error {
			return tx.Move(node.Context(), []scheduler.Move{node.grantMove(specs[i], turns[i], "w2", tx.Now())})
		})
		node.wants(err, scheduler.ErrMoved)
	}
	b.same("the queue", b.queue(), left)
	b.update(func(tx scheduler.Tx) error { // cancels a job of the other node
		locked, err := tx.Lock(b.Context(), []lessor.JobID{specs[10].ID})
		if err != nil {
			return err
		}
		c, err := cancel(locked[specs[10].ID], tx.Now())
		if err != nil {
			return err
		}
		return tx.Move(b.Context(), []scheduler.Move{changeMove(locked[specs[10].ID], c)})
	})
	a.at(specs[10].ID, rules.Ended, lessor.Cancelled, a.standing(specs[10].ID).Turn)
}
