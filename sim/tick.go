package main

import (
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// tickSlack is how late a tick may be without a fault.
const tickSlack = 5 * time.Second

// checkTicks checks that nothing but a fault makes a tick late (P10): none is overdue, and none of the last ten minutes
// was missed, caught up, or skipped because it was late.
func (b *knowledge) checkTicks() {
	serving := b.noFaultFor(2*tickSlack) && b.now-b.servedAt < longGap // else no node may live
	b.read(func(v scheduler.View) error {
		now := v.Now()
		all, err := v.DefinitionList(ctx, scheduler.DefinitionQuery{Limit: 100})
		for _, d := range all {
			if d.DueAt != 0 && now.Sub(d.DueAt) > tickSlack && serving {
				b.fail("P10", "tick %v of %s was due at %v, it is %v", d.NextTick, d.ID, d.DueAt, now)
			}
			rows, err := v.TickList(ctx, scheduler.TickQuery{
				Definition: d.ID, Tenant: d.Tenant, From: now.Add(-10 * time.Minute), To: now, Limit: 1000,
			})
			if err != nil {
				return err
			}
			for i := range rows {
				if r := &rows[i]; wasLate(r) && r.At.Sub(b.faults.clock) > 2*tickSlack {
					b.fail("P10", "without a fault, a tick of %s is %+v", d.ID, *r)
				}
			}
		}
		return err
	})
}

// wasLate reports whether a tick would have another outcome if it had been noticed in time.
func wasLate(r *rules.TickRow) bool {
	late := []string{rules.TickSuperseded, rules.TickLate, rules.TickOverLimit}
	return r.Outcome == lessor.TickMissed || r.Outcome == lessor.TickCaughtUp && r.Reason != rules.TickBackfill ||
		slices.Contains(late, r.Reason)
}
