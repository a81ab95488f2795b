package storetest

import (
	"errors"
	"testing"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// errTest fails a transaction on purpose.
var errTest = errors.New("the test wants no commit")

// changeMove is the move of an operator's change.
func changeMove(s *rules.Standing, c rules.Change) scheduler.Move {
	m := scheduler.Move{
		From: s.Place, To: c.Next.Place, Turn: s.Turn, Held: s.Held, Wait: c.Next.Wait, Attempt: c.Next.Attempt,
		Done: c.Next.Done,
	}
	if c.Next.Place != rules.Ended {
		m.Turn = c.Next.Turn
	}
	return m
}

// change makes an operator's change.
func (b *bed) change(id lessor.JobID, decide func(*rules.Standing, lessor.Instant) (rules.Change, error)) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error {
		all, err := tx.Standings(b.Context(), []lessor.JobID{id})
		if err != nil {
			return err
		}
		c, err := decide(all[id], tx.Now())
		if err != nil {
			return err
		}
		if c.Next != nil {
			if err := tx.Move(b.Context(), []scheduler.Move{changeMove(all[id], c)}); err != nil {
				return err
			}
		}
		return tx.Note(b.Context(), c.Notes)
	})
}

func cancel(s *rules.Standing, now lessor.Instant) (rules.Change, error) {
	return rules.Cancel(s, true, "operator", now)
}

func retry(s *rules.Standing, now lessor.Instant) (rules.Change, error) {
	return rules.Retry(s, "operator", now)
}

func reject(s *rules.Standing, now lessor.Instant) (rules.Change, error) {
	return rules.Reject(s.Turn, &lessor.Error{Code: lessor.CodeInvalidValue, Detail: "no"}, now), nil
}

func later(s *rules.Spec) { s.RunAt = 4_000_000_000_000 }

// promote moves a waiting job into the queue.
func (b *bed) promote(id lessor.JobID) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error {
		all, err := tx.Standings(b.Context(), []lessor.JobID{id})
		if err != nil {
			return err
		}
		s := all[id]
		return tx.Move(b.Context(), []scheduler.Move{{
			From: rules.Delayed, To: rules.InQueue, Turn: rules.Promote(s.Turn, s.Wait, tx.Now()),
		}})
	})
}

// at fails the test unless the job is at a place, in a state, with the standing of turn.
func (b *bed) at(id lessor.JobID, p rules.Place, state lessor.State, turn rules.Turn) *rules.Standing {
	b.Helper()
	s := b.standing(id)
	if s == nil {
		b.Fatalf("job %s is not known", id)
	}
	if s.Place != p || s.State() != state {
		b.Fatalf("job is at place %d, %s; want %d, %s", s.Place, s.State(), p, state)
	}
	b.same("turn", s.Turn, turn)
	b.onePlaceEach()
	return s
}

// pairs are the moves that the scheduler makes.
var pairs = []struct {
	name string
	test func(*bed)
}{
	{"Nowhere→InQueue→Leased→Ended", func(b *bed) {
		s := b.queued()
		t := b.at(s.ID, rules.InQueue, lessor.Queued, firstTurn(s, b.standing(s.ID).Turn.QueuedAt)).Turn
		h := b.grant(s, "w1")
		st := b.at(s.ID, rules.Leased, lessor.Leased, h.Turn)
		b.same("lease", st.Held, h)
		if h.Turn.Attempt != t.Attempt+1 {
			b.Fatalf("attempt %d after %d", h.Turn.Attempt, t.Attempt)
		}
		m := b.end(h, completed)
		b.same("end", b.at(s.ID, rules.Ended, lessor.Completed, m.Done.Attempt.Turn).Done, m.Done)
	}},
	{"Nowhere→Delayed→InQueue", func(b *bed) {
		s := b.queued(later)
		st := b.at(s.ID, rules.Delayed, lessor.Queued, firstTurn(s, b.standing(s.ID).Turn.QueuedAt))
		b.same("wait", st.Wait, rules.Wait{Until: s.RunAt, State: lessor.Queued})
		b.promote(s.ID)
		turn := st.Turn
		turn.QueuedAt = b.standing(s.ID).Turn.QueuedAt
		b.at(s.ID, rules.InQueue, lessor.Queued, turn)
	}},
	{"Leased→InQueue", func(b *bed) {
		m := b.end(b.grant(b.queued(), "w1"), released)
		b.at(m.Turn.Job, rules.InQueue, lessor.Queued, m.Turn)
	}},
	{"Leased→Delayed", func(b *bed) {
		for _, e := range []rules.End{failed, expired} {
			m := b.end(b.grant(b.queued(), "w1"), e)
			st := b.at(m.Turn.Job, rules.Delayed, lessor.State(e.Outcome), m.Turn)
			b.same("wait", st.Wait, m.Wait)
		}
	}},
	{"Leased→Ended→InQueue", func(b *bed) {
		s := b.queued()
		m := b.end(b.grant(s, "w1"), fatal)
		b.at(s.ID, rules.Ended, lessor.Failed, m.Done.Attempt.Turn)
		b.change(s.ID, retry)
		b.at(s.ID, rules.InQueue, lessor.Queued, b.standing(s.ID).Turn)
		if h := b.grant(s, "w2"); h.Turn.Fence <= m.Held.Turn.Fence {
			b.Fatalf("fence %d after %d", h.Turn.Fence, m.Held.Turn.Fence)
		}
	}},
	{"InQueue→Ended→InQueue", func(b *bed) {
		s := b.queued()
		b.change(s.ID, cancel)
		st := b.standing(s.ID)
		b.at(s.ID, rules.Ended, lessor.Cancelled, st.Turn)
		if !st.Done.Attempt.Lease.IsZero() {
			b.Fatalf("it was never leased, and ended under lease %s", st.Done.Attempt.Lease)
		}
		b.change(s.ID, retry)
		b.at(s.ID, rules.InQueue, lessor.Queued, b.standing(s.ID).Turn)
	}},
	{"Delayed→Ended→Delayed", func(b *bed) {
		s := b.queued(later)
		b.change(s.ID, cancel)
		b.at(s.ID, rules.Ended, lessor.Cancelled, b.standing(s.ID).Turn)
		b.change(s.ID, retry)
		st := b.at(s.ID, rules.Delayed, lessor.Queued, b.standing(s.ID).Turn)
		b.same("wait", st.Wait, rules.Wait{Until: s.RunAt, State: lessor.Queued})
	}},
}

func everyPair(b *bed) {
	for _, c := range pairs {
		b.Run(c.name, func(t *testing.T) {
			of := *b
			of.T = t
			c.test(&of)
			b.count = of.count
		})
	}
}

func missingRowIsErrMoved(b *bed) {
	waiting, queued, held, ended := b.queued(later), b.queued(), b.queued(), b.queued()
	h := b.grant(held, "w1")
	past := b.grant(ended, "w2")
	b.end(past, completed)
	turn := func(s *rules.Spec) rules.Turn { return firstTurn(s, 1) }
	gone, err := endMove(past, completed, 2)
	b.must(err)
	other := turn(queued)
	other.Job = waiting.ID
	for name, m := range map[string]scheduler.Move{
		"waiting, not queued":  b.grantMove(waiting, turn(waiting), "w1", 5),
		"held, not queued":     b.grantMove(held, turn(held), "w1", 5),
		"ended, not queued":    b.grantMove(ended, turn(ended), "w1", 5),
		"queued, not waiting":  {From: rules.Delayed, To: rules.InQueue, Turn: turn(queued)},
		"held, not waiting":    {From: rules.Delayed, To: rules.InQueue, Turn: h.Turn},
		"lease that has ended": gone,
		"queued, not ended":    {From: rules.Ended, To: rules.InQueue, Turn: turn(queued)},
		"another job at that place": {
			From: rules.InQueue, To: rules.Delayed, Turn: other, Wait: rules.Wait{Until: 9, State: lessor.Queued},
		},
	} {
		fine := b.draft()
		err := b.Update(b.Context(), func(tx scheduler.Tx) error {
			if err := insert(b.Context(), tx, fine); err != nil {
				return err
			}
			return tx.Move(b.Context(), []scheduler.Move{enqueue(fine, tx.Now()), m})
		})
		if !errors.Is(err, scheduler.ErrMoved) {
			b.Errorf("%s: got error %v, want ErrMoved", name, err)
		}
		if b.standing(fine.ID) != nil {
			b.Errorf("%s: another job of the transaction stayed", name)
		}
		b.onePlaceEach()
	}
	err = b.Update(b.Context(), func(tx scheduler.Tx) error { return tx.SaveLeases(b.Context(), []*rules.Held{past}) })
	b.wants(err, scheduler.ErrMoved)
}

func failureLeavesNothing(b *bed) {
	s := b.queued()
	h := b.grant(b.queued(), "w1")
	fine := b.draft(func(s *rules.Spec) { s.IdempotencyKey = "k" })
	all := func(tx scheduler.Tx) error {
		ctx := b.Context()
		end, err := endMove(h, failed, tx.Now())
		if err != nil {
			return err
		}
		grant := b.grantMove(s, b.turnIn(tx, s.ID), "w2", tx.Now())
		return errors.Join(
			insert(ctx, tx, fine), tx.Move(ctx, []scheduler.Move{enqueue(fine, tx.Now()), end, grant}),
			tx.SaveReports(ctx, []rules.Report{{Job: s.ID, Message: new("hello")}}),
			tx.Note(ctx, []rules.Note{{Job: s.ID, Reason: "noted"}}),
			tx.SaveSetting(ctx, "name", []byte("value")),
			tx.SaveToken(ctx, scheduler.Token{ID: lessor.TokenID{UUID: b.uuid()}, Name: "t"}),
		)
	}
	before := b.everything(s.ID, h.Turn.Job, fine.ID)
	b.wants(b.Update(b.Context(), func(tx scheduler.Tx) error {
		if err := all(tx); err != nil {
			return err
		}
		return errTest
	}), errTest)
	b.same("the store after a failure", b.everything(s.ID, h.Turn.Job, fine.ID), before)
	b.onePlaceEach()
	b.update(all) // the same batch runs again, with the same ids
	b.onePlaceEach()
	if after := b.everything(s.ID, h.Turn.Job, fine.ID); after["setting"] == nil || b.standing(fine.ID) == nil {
		b.Fatalf("the batch that was committed left nothing: %v", after)
	}
}

func (b *bed) turnIn(v scheduler.View, id lessor.JobID) rules.Turn {
	b.Helper()
	all, err := v.Standings(b.Context(), []lessor.JobID{id})
	b.must(err)
	return all[id].Turn
}

// notTwiceInOneCall ends a lease twice in one call, which is a fault of the caller.
func notTwiceInOneCall(b *bed) {
	h := b.grant(b.queued(), "w1")
	err := b.Update(b.Context(), func(tx scheduler.Tx) error {
		m, err := endMove(h, completed, tx.Now())
		b.must(err)
		return tx.Move(b.Context(), []scheduler.Move{m, m})
	})
	if err == nil {
		b.Error("one call ended a lease twice")
	}
	b.same("lease after it", b.leases(h.ID), map[lessor.LeaseID]*rules.Held{h.ID: h})
}

// everything reads all that a transaction can change, inside a transaction, where a stale cache would show.
func (b *bed) everything(ids ...lessor.JobID) map[string]any {
	b.Helper()
	all := map[string]any{}
	b.update(func(tx scheduler.Tx) (err error) {
		ctx := b.Context()
		keep := func(name string, value any, e error) {
			all[name] = value
			err = errors.Join(err, e)
		}
		standings, e := tx.Standings(ctx, ids)
		keep("standings", standings, e)
		setting, e := tx.Setting(ctx, "name")
		if setting != nil {
			keep("setting", setting, e)
		}
		tokens, e := tx.Tokens(ctx)
		keep("tokens", tokens, e)
		leases := map[lessor.LeaseID]*rules.Held{}
		keep("leases", leases, tx.EachLease(ctx, func(h *rules.Held) error {
			leases[h.ID] = h
			return nil
		}))
		histories, e := tx.Histories(ctx, ids)
		keep("histories", histories, e)
		return err
	})
	return all
}
