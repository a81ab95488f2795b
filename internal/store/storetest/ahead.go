package storetest

import (
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// waitsAhead finds the jobs whose wait for a retry began after an instant, and moves one of them to another time.
func waitsAhead(b *bed) {
	early, late := b.queued(), b.queued()
	begun := map[lessor.JobID]lessor.Instant{}
	for _, s := range []*rules.Spec{early, late} {
		m := b.end(b.grant(s, "w1"), failed)
		begun[s.ID] = m.Turn.QueuedAt
		for b.now() == begun[s.ID] { // the next begins at least a millisecond later
		}
	}
	b.queued(func(s *rules.Spec) { s.RunAt = 4_000_000_000_000 }) // waits for its start time
	ahead := func(after lessor.Instant, limit int) (jobs []lessor.JobID) {
		b.update(func(tx scheduler.Tx) error {
			all, err := tx.Ahead(b.Context(), after, limit)
			for _, w := range all {
				jobs = append(jobs, w.Turn.Job)
				st, err := tx.Standings(b.Context(), []lessor.JobID{w.Turn.Job})
				b.must(err)
				b.same("turn", w.Turn, st[w.Turn.Job].Turn)
				b.same("wait", w.Wait, st[w.Turn.Job].Wait)
			}
			return err
		})
		return jobs
	}
	b.same("after all", ahead(begun[late.ID], 10), nil)
	b.same("after the first", ahead(begun[early.ID], 10), []lessor.JobID{late.ID})
	b.same("none asked for", ahead(0, 0), nil)
	if got := ahead(begun[early.ID]-1, 10); len(got) != 2 {
		b.Fatalf("%d waits began after the instant before both, want 2", len(got))
	}
	if n := len(ahead(0, 1)); n > 1 {
		b.Fatalf("%d waits began after the instant, want at most 1", n)
	}

	st := b.standing(late.ID)
	st.Turn.QueuedAt, st.Wait.Until = begun[early.ID], begun[early.ID].Add(time.Second)
	b.update(func(tx scheduler.Tx) error {
		return tx.Move(b.Context(), []scheduler.Move{
			{From: rules.Delayed, To: rules.Delayed, Turn: st.Turn, Wait: st.Wait},
		})
	})
	again := b.standing(late.ID)
	b.same("turn of a wait that was set right", again.Turn, st.Turn)
	b.same("wait that was set right", again.Wait, st.Wait)
	b.same("after the first, once it is right", ahead(begun[early.ID], 10), nil)
}

// decidedTicks reads the ticks of several definitions that have a row.
func decidedTicks(b *bed) {
	b.saveTicks(
		rules.TickRow{Definition: "d", Tenant: acme, At: 10, Outcome: lessor.TickFired},
		rules.TickRow{Definition: "d", Tenant: acme, At: 30, Outcome: lessor.TickSkipped},
		rules.TickRow{Definition: "d", Tenant: acme, At: 20, Outcome: lessor.TickFired},
		rules.TickRow{Definition: "d", Tenant: globex, At: 15, Outcome: lessor.TickFired},
		rules.TickRow{Definition: "e", Tenant: acme, At: 20, Outcome: lessor.TickFired},
	)
	ds := func(from lessor.Instant) []*rules.Definition {
		return []*rules.Definition{
			{ID: "d", Tenant: acme, NextTick: from}, {ID: "e", Tenant: acme, NextTick: 21}, {
				ID: "f", Tenant: acme, NextTick: 1,
			},
		}
	}
	for _, c := range []struct {
		from, to lessor.Instant
		limit    int
		want     map[string][]lessor.Instant
	}{
		{10, 30, 9, map[string][]lessor.Instant{"d": {10, 20, 30}}},
		{11, 29, 9, map[string][]lessor.Instant{"d": {20}}},
		{10, 30, 2, map[string][]lessor.Instant{"d": {10, 20}}},
		{31, 99, 9, nil},
	} {
		b.update(func(tx scheduler.Tx) error {
			got, err := tx.DecidedTicks(b.Context(), ds(c.from), c.to, c.limit)
			b.same("decided ticks", got, c.want)
			return err
		})
	}
}
