package storetest

import (
	"errors"
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func (b *bed) saveTicks(rows ...rules.TickRow) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error { return tx.SaveTicks(b.Context(), rows) })
}

// ticks reads a list to its end, two ticks a page.
func (b *bed) ticks(q scheduler.TickQuery) []rules.TickRow {
	b.Helper()
	q.Limit = perPage
	return readPages(b, "ticks", q, scheduler.View.TickList, func(q *scheduler.TickQuery, last rules.TickRow) {
		q.After = last.At
	})
}

func ticksComeBack(b *bed) {
	rows := []rules.TickRow{
		{Definition: "d", Tenant: acme, At: 10, Outcome: lessor.TickMissed, From: 10, To: 40, Count: 4},
		{Definition: "d", Tenant: acme, At: 50, Outcome: lessor.TickSkipped, Reason: rules.TickOverlap},
		{Definition: "d", Tenant: acme, At: 60, Outcome: lessor.TickCaughtUp, Run: b.jobID()},
		{Definition: "d", Tenant: acme, At: 70, Outcome: lessor.TickCircuitOpen, Run: b.jobID()},
		{Definition: "d", Tenant: acme, At: 80, Outcome: lessor.TickFired, Run: b.jobID()},
	}
	others := []rules.TickRow{
		{Definition: "d", Tenant: globex, At: 65, Outcome: lessor.TickFired}, // of one that had the name before
		{Definition: "e", Tenant: acme, At: 60, Outcome: lessor.TickFired},
	}
	b.saveTicks(slices.Concat(others, []rules.TickRow{rows[3], rows[0], rows[4], rows[1], rows[2]})...)
	for _, c := range []struct {
		from, to lessor.Instant
		want     []rules.TickRow
	}{
		{0, 0, rows},
		{10, 80, rows},
		{11, 79, rows[1:4]},
		{50, 0, rows[1:]},
		{0, 50, rows[:2]},
		{60, 60, rows[2:3]},
		{81, 0, nil},
		{0, 9, nil},
	} {
		got := b.ticks(scheduler.TickQuery{Definition: "d", Tenant: acme, From: c.from, To: c.to})
		b.same(fmt.Sprintf("ticks %d to %d", c.from, c.to), append([]rules.TickRow{}, got...),
			append([]rules.TickRow{}, c.want...))
	}
	b.same("ticks of its namesake", b.ticks(scheduler.TickQuery{Definition: "d", Tenant: globex}), others[:1])
	b.same("ticks of another", b.ticks(scheduler.TickQuery{Definition: "e", Tenant: acme}), others[1:])
}

func oneRowATick(b *bed) {
	first := rules.TickRow{Definition: "d", Tenant: acme, At: 10, Outcome: lessor.TickFired, Run: b.jobID()}
	b.saveTicks(first)
	second := first
	second.Outcome, second.Run = lessor.TickSkipped, lessor.JobID{}
	err := b.Update(b.Context(), func(tx scheduler.Tx) error {
		if err := tx.SaveSetting(b.Context(), "name", []byte("x")); err != nil {
			return err
		}
		return tx.SaveTicks(b.Context(), []rules.TickRow{
			{Definition: "d", Tenant: acme, At: 20, Outcome: lessor.TickFired}, second,
		})
	})
	var refusal *lessor.Error
	if err == nil || errors.As(err, &refusal) {
		b.Fatalf("a second row of a tick: got %v, want an error that is no refusal", err)
	}
	b.same("ticks", b.ticks(scheduler.TickQuery{Definition: "d", Tenant: acme}), []rules.TickRow{first})
	b.view(func(v scheduler.View) error {
		setting, err := v.Setting(b.Context(), "name")
		b.same("what else the transaction wrote", setting, nil)
		return err
	})
	// The tick of another definition at the same time.
	b.saveTicks(rules.TickRow{Definition: "e", Tenant: acme, At: 10, Outcome: lessor.TickFired})
	others := rules.TickRow{
		Definition: "d", Tenant: globex, At: 10, Outcome: lessor.TickSkipped, Reason: rules.TickOverlap,
	}
	b.saveTicks(others) // of the tenant that has the id now
	others.Outcome, others.Reason = lessor.TickCaughtUp, rules.TickBackfill
	b.update(func(tx scheduler.Tx) error { return tx.ReplaceTicks(b.Context(), []rules.TickRow{others}) })
	b.same("ticks after another tenant's", b.ticks(scheduler.TickQuery{Definition: "d", Tenant: acme}),
		[]rules.TickRow{first})
	b.same("ticks of another tenant", b.ticks(scheduler.TickQuery{Definition: "d", Tenant: globex}),
		[]rules.TickRow{others})
}

func replacedTicks(b *bed) {
	skipped := rules.TickRow{Definition: "d", Tenant: acme, At: 10, Outcome: lessor.TickSkipped, Reason: rules.TickLate}
	other := rules.TickRow{Definition: "d", Tenant: acme, At: 20, Outcome: lessor.TickCircuitOpen, Run: b.jobID()}
	b.saveTicks(skipped, other)
	filled := rules.TickRow{
		Definition: "d", Tenant: acme, At: 10, Outcome: lessor.TickCaughtUp, Run: b.jobID(), From: 1, To: 2, Count: 3,
	}
	b.update(func(tx scheduler.Tx) error { return tx.ReplaceTicks(b.Context(), []rules.TickRow{filled}) })
	b.same("ticks", b.ticks(scheduler.TickQuery{Definition: "d", Tenant: acme}), []rules.TickRow{filled, other})
	other.Outcome = lessor.TickFired
	b.update(func(tx scheduler.Tx) error { return tx.ReplaceTicks(b.Context(), []rules.TickRow{other}) })
	b.same("ticks under an open circuit", b.circuitTicks(scheduler.CircuitTickQuery{}), nil)
}

// circuitTicks reads a list to its end, two ticks a page.
func (b *bed) circuitTicks(q scheduler.CircuitTickQuery) []rules.TickRow {
	b.Helper()
	q.Limit = perPage
	return readPages(b, "ticks under open circuits", q, scheduler.View.CircuitTicks,
		func(q *scheduler.CircuitTickQuery, last rules.TickRow) { q.After = &last.Run })
}

func circuitTicks(b *bed) {
	var all []rules.TickRow
	for i := range 24 {
		r := rules.TickRow{
			Definition: []string{"d", "e", "f"}[i%3], Tenant: tenant(byte(i % 2)),
			At:      lessor.Instant(1000 - i), // times fall, runs rise
			Outcome: lessor.TickCircuitOpen, Run: b.jobID(),
		}
		if i%4 == 3 {
			r.Outcome = lessor.TickFired
		}
		all = append(all, r)
	}
	b.saveTicks(all...)
	one, fired, open, none := tenant(1), all[3].Run, all[4].Run, b.jobID()
	for _, definition := range []string{"", "d", "e", "none"} {
		for _, tenant := range []*lessor.TenantID{nil, &one} {
			for _, run := range []*lessor.JobID{nil, &fired, &open, &none} {
				want := []rules.TickRow{}
				for _, r := range slices.Backward(all) {
					if r.Outcome == lessor.TickCircuitOpen && (definition == "" || r.Definition == definition) &&
						(tenant == nil || r.Tenant == *tenant) && (run == nil || r.Run == *run) {
						want = append(want, r)
					}
				}
				q := scheduler.CircuitTickQuery{Definition: definition, Tenant: tenant, Run: run}
				b.same(fmt.Sprintf("ticks of %+v", q), b.circuitTicks(q), want)
			}
		}
	}
}
