package storetest

import (
	"strconv"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// eachTickOnce lets two nodes take due definitions at once: every tick gets exactly one row.
func eachTickOnce(a, b *bed) {
	const definitions, ticks, step = 7, 12, 1000
	var ids []string
	var want []lessor.Instant
	for i := range definitions {
		ids = append(ids, "tick-"+strconv.Itoa(i))
		a.saveDefinitions(a.definition(ids[i], running, func(d *rules.Definition) { d.NextTick, d.DueAt = step, step }))
	}
	for i := range ticks {
		want = append(want, lessor.Instant((i+1)*step))
	}
	both(a, b, func(node *bed, _ int) {
		for left := true; left; {
			node.update(func(tx scheduler.Tx) error {
				due, err := tx.DueDefinitions(node.Context(), ticks*step, 2)
				if err != nil {
					return err
				}
				var rows []rules.TickRow
				for _, d := range due {
					rows = append(rows, rules.TickRow{
						Definition: d.ID, Tenant: d.Tenant, At: d.NextTick, Outcome: lessor.TickFired,
					})
					d.NextTick, d.DueAt = d.NextTick+step, d.DueAt+step
				}
				if err := tx.SaveTicks(node.Context(), rows); err != nil {
					return err
				}
				if err := tx.SaveDefinitions(node.Context(), due); err != nil {
					return err
				}
				next, err := tx.NextTick(node.Context()) // what the other has locked is due too
				left = next <= ticks*step
				return err
			})
		}
	})
	for _, id := range ids {
		var got []lessor.Instant
		for _, row := range a.ticks(scheduler.TickQuery{Definition: id, Tenant: acme, Limit: 100}) {
			got = append(got, row.At)
		}
		a.same("ticks of "+id, got, want)
	}
}

// noFailureIsLost counts the failures of one circuit from two nodes, from the first.
func noFailureIsLost(a, b *bed) {
	const each = 100
	a.saveDefinitions(a.definition("nightly"), a.definition("hourly"))
	both(a, b, func(node *bed, i int) {
		ids := []string{"nightly", "hourly"}
		if i == 1 {
			ids = []string{"hourly", "nightly"}
		}
		for range each {
			node.update(func(tx scheduler.Tx) error {
				cs, err := tx.LockCircuits(node.Context(), ids, true)
				if err != nil {
					return err
				}
				var counted []*rules.Circuit
				for _, id := range ids {
					cs[id].Failures++
					counted = append(counted, cs[id])
				}
				return tx.SaveCircuits(node.Context(), counted)
			})
		}
	})
	for _, c := range a.circuitList(nil) {
		if c.Failures != 2*each {
			a.Errorf("%s: %d failures of %d were counted", c.Definition, c.Failures, 2*each)
		}
	}
}

// lockedCircuitIsLeftOut: a call that does not wait gets the circuits that no other node has locked.
func lockedCircuitIsLeftOut(a, b *bed) {
	a.saveDefinitions(a.definition("nightly"), a.definition("hourly"))
	a.update(func(tx scheduler.Tx) error {
		if _, err := tx.LockCircuits(a.Context(), []string{"nightly"}, true); err != nil {
			return err
		}
		b.update(func(tx scheduler.Tx) error {
			got, err := tx.LockCircuits(b.Context(), []string{"nightly", "hourly"}, false)
			b.same("circuits that are free", got, map[string]*rules.Circuit{
				"hourly": {Definition: "hourly", Tenant: acme},
			})
			return err
		})
		return nil
	})
}

// lockedDefinitionIsWaitedFor: a node waits for a definition that another has locked, and sees the change of the other.
func lockedDefinitionIsWaitedFor(a, b *bed) {
	a.saveDefinitions(a.definition("nightly"))
	const held = 150 * time.Millisecond
	locked := make(chan lessor.Instant)
	var wg sync.WaitGroup
	wg.Go(func() {
		a.update(func(tx scheduler.Tx) error {
			ds, err := tx.LockDefinitions(a.Context(), []string{"nightly"})
			locked <- tx.Now()
			if err != nil {
				return err
			}
			time.Sleep(held) //nolint:forbidigo // the other node must wait in the server
			ds["nightly"].Units = 77
			return tx.SaveDefinitions(a.Context(), []*rules.Definition{ds["nightly"]})
		})
	})
	at := <-locked
	b.update(func(tx scheduler.Tx) error {
		ds, err := tx.LockDefinitions(b.Context(), []string{"nightly"})
		if err != nil {
			return err
		}
		if ds["nightly"].Units != 77 || tx.Now().Sub(at) < held {
			b.Errorf("the definition has %d units, %v after another node locked it; want 77, after %v",
				ds["nightly"].Units, tx.Now().Sub(at), held)
		}
		ds["nightly"].Units = 78
		return tx.SaveDefinitions(b.Context(), []*rules.Definition{ds["nightly"]})
	})
	wg.Wait()
	if got := a.definitions("nightly")["nightly"].Units; got != 78 {
		a.Errorf("the definition has %d units, want those of the later change", got)
	}
}

// newDefinitionIsNotOverwritten: two nodes that both found no definition cannot both create it.
func newDefinitionIsNotOverwritten(a, b *bed) {
	ids := []string{"nightly"}
	err := a.Update(a.Context(), func(tx scheduler.Tx) error {
		found, err := tx.LockDefinitions(a.Context(), ids)
		a.same("definitions before there is one", found, nil)
		if err != nil {
			return err
		}
		b.update(func(tx scheduler.Tx) error {
			_, err := tx.LockDefinitions(b.Context(), ids)
			if err != nil {
				return err
			}
			return tx.SaveDefinitions(b.Context(), []*rules.Definition{
				b.definition("nightly", func(d *rules.Definition) { d.Tenant = globex }),
			})
		})
		return tx.SaveDefinitions(a.Context(), []*rules.Definition{a.definition("nightly")})
	})
	a.wants(err, scheduler.ErrAgain)
	if got := a.definitions("nightly")["nightly"].Tenant; got != globex {
		a.Errorf("the definition belongs to %s, want the first to make it", got)
	}
}
