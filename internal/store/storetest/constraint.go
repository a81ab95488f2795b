package storetest

import (
	"errors"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func swallowedFault(b *bed) {
	s := b.queued()
	fine := b.draft()
	err := b.Update(b.Context(), func(tx scheduler.Tx) error {
		_ = insert(b.Context(), tx, fine)
		_ = tx.Move(b.Context(), []scheduler.Move{{From: rules.Delayed, To: rules.InQueue, Turn: firstTurn(s, 1)}})
		_ = tx.Move(b.Context(), []scheduler.Move{enqueue(fine, tx.Now())})
		return nil
	})
	b.wants(err, scheduler.ErrMoved)
	if b.standing(fine.ID) != nil {
		b.Fatal("a job of the failed transaction stayed")
	}
	b.onePlaceEach()
}

func lockHeldOnce(b *bed) {
	locked := func(s *rules.Spec) { s.Lane.LockKey = "db:1" }
	first, second := b.queued(locked), b.queued(locked)
	others := b.queued(locked, func(s *rules.Spec) { s.Lane.Tenant = globex })
	h := b.grant(first, "w1")
	grant := func() error {
		return b.Update(b.Context(), func(tx scheduler.Tx) error {
			return tx.Move(b.Context(), []scheduler.Move{b.grantMove(second, b.turnIn(tx, second.ID), "w2", tx.Now())})
		})
	}
	b.wants(grant(), scheduler.ErrBadCall)
	b.at(second.ID, rules.InQueue, lessor.Queued, b.standing(second.ID).Turn)
	b.grant(others, "w3") // another tenant's lock of the same name
	b.grant(b.queued(), "w4")
	b.grant(b.queued(), "w4") // no lock
	b.end(h, completed)
	b.must(grant())
	b.onePlaceEach()
}

// manyInOneCall moves more rows to every place at once than a driver puts into one statement.
func manyInOneCall(b *bed) {
	const n = 150
	var specs []*rules.Spec
	for range n {
		specs = append(specs, b.draft())
	}
	b.submit(specs...)
	var held []*rules.Held
	b.update(func(tx scheduler.Tx) error {
		var moves []scheduler.Move
		for _, s := range specs {
			moves = append(moves, b.grantMove(s, firstTurn(s, tx.Now()), "w1", tx.Now()))
			held = append(held, moves[len(moves)-1].Held)
		}
		return tx.Move(b.Context(), moves)
	})
	b.onePlaceEach()
	want := map[lessor.JobID]rules.Place{}
	b.update(func(tx scheduler.Tx) error {
		var moves []scheduler.Move
		for i, h := range held {
			m, err := endMove(h, []rules.End{completed, failed, released, expired, fatal}[i%5], tx.Now())
			if err != nil {
				return err
			}
			moves = append(moves, m)
			want[h.Turn.Job] = m.To
		}
		return tx.Move(b.Context(), moves)
	})
	got := map[lessor.JobID]rules.Place{}
	for _, s := range specs {
		got[s.ID] = b.standing(s.ID).Place
	}
	b.same("places", got, want)
	b.onePlaceEach()
}

// notConfusedWithTheNext: a lease is never confused with the next one of the same job, nor an id with another.
func notConfusedWithTheNext(b *bed) {
	s := b.queued()
	first := b.grant(s, "w1")
	b.end(first, released)
	second := b.grant(s, "w1")
	nobodys := second.ID
	nobodys.UUID[0]++
	b.same("leases", b.leases(first.ID, nobodys), nil)
	b.same("leases", b.leases(first.ID, nobodys, second.ID), map[lessor.LeaseID]*rules.Held{second.ID: second})
	late, err := endMove(first, completed, 2)
	b.must(err)
	for name, write := range map[string]func(tx scheduler.Tx) error{
		"a beat": func(tx scheduler.Tx) error { return tx.SaveLeases(b.Context(), []*rules.Held{new(*first)}) },
		"an end": func(tx scheduler.Tx) error { return tx.Move(b.Context(), []scheduler.Move{late}) },
	} {
		if err := b.Update(b.Context(), write); !errors.Is(err, scheduler.ErrMoved) {
			b.Errorf("%s of the first: got error %v, want ErrMoved", name, err)
		}
	}
	b.end(second, completed)
	b.view(func(v scheduler.View) error {
		ends, err := v.LeaseEnds(b.Context(), []lessor.LeaseID{nobodys})
		b.same("ends", ends, nil)
		return err
	})
}
