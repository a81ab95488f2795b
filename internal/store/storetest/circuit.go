package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func (b *bed) circuits(ids ...string) (got map[string]*rules.Circuit) {
	b.Helper()
	for _, wait := range []bool{true, false} {
		b.update(func(tx scheduler.Tx) (err error) {
			got, err = tx.LockCircuits(b.Context(), ids, wait)
			return err
		})
	}
	return got
}

func (b *bed) saveCircuits(cs ...*rules.Circuit) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error { return tx.SaveCircuits(b.Context(), cs) })
}

// circuitList reads a list to its end, two circuits a page.
func (b *bed) circuitList(tenant *lessor.TenantID) []*rules.Circuit {
	b.Helper()
	q := scheduler.CircuitQuery{Tenant: tenant, Limit: perPage}
	return readPages(b, "circuits", q, scheduler.View.Circuits, func(q *scheduler.CircuitQuery, last *rules.Circuit) {
		q.After = scheduler.PlaceOfCircuit(last)
	})
}

func circuitsWithoutRow(b *bed) {
	b.saveDefinitions(b.definition("d"), b.definition("e", func(d *rules.Definition) { d.Tenant = globex }))
	never := map[string]*rules.Circuit{"d": {Definition: "d", Tenant: acme}, "e": {Definition: "e", Tenant: globex}}
	b.same("circuits that never failed", b.circuits("d", "e", "no definition"), never)
	b.same("circuits to list", b.circuitList(nil), nil)
	open := &rules.Circuit{
		Definition: "d", Tenant: acme, State: lessor.CircuitHalfOpen, Failures: 5, OpenedAt: 100, RetryAt: 200,
		Trial: b.leaseID(),
	}
	counted := &rules.Circuit{Definition: "e", Tenant: globex, Failures: 2}
	b.saveCircuits(open, counted)
	b.same("circuits", b.circuits("d", "e"), map[string]*rules.Circuit{"d": open, "e": counted})
	b.same("circuits to list", b.circuitList(nil), []*rules.Circuit{open, counted})
	open.Reset()
	counted.Failures = 3
	b.saveCircuits(open, counted)
	b.same("circuits after a reset", b.circuits("d", "e"), map[string]*rules.Circuit{"d": never["d"], "e": counted})
	b.same("circuits to list after a reset", b.circuitList(nil), []*rules.Circuit{counted})
}

func circuitLists(b *bed) {
	var all []*rules.Circuit // opened at three instants; of each the largest id comes first, by bytes
	for i, id := range []string{"a", "Zebra", "ab", "a_b", "ä", "a.b"} {
		b.saveDefinitions(b.definition(id, func(d *rules.Definition) { d.Tenant = tenant(byte(i % 2)) }))
		all = append(all, &rules.Circuit{
			Definition: id, Tenant: tenant(byte(i % 2)), State: lessor.CircuitOpen, Failures: i,
			OpenedAt: lessor.Instant(1000 - 10*(i/2)),
		})
	}
	mixed := slices.Clone(all)
	slices.Reverse(mixed)
	b.saveCircuits(mixed...)
	b.same("circuits", b.circuitList(nil), all)
	zero, none := tenant(0), tenant(7)
	b.same("circuits of one tenant", b.circuitList(&zero), []*rules.Circuit{all[0], all[2], all[4]})
	b.same("circuits of a tenant without any", b.circuitList(&none), nil)
}

// eachBlock saves definitions that are held or not, with circuits in every state.
func eachBlock(b *bed) {
	states := []*rules.Circuit{
		nil,
		{Failures: 2},
		{State: lessor.CircuitClosed, Failures: 3},
		{State: lessor.CircuitOpen, Failures: 5, OpenedAt: 1, RetryAt: 2},
		{State: lessor.CircuitHalfOpen, Failures: 5, OpenedAt: 1, RetryAt: 2, Trial: b.leaseID()},
	}
	var want []scheduler.Block
	for i, state := range states {
		for j, edit := range []func(*rules.Definition){
			running, func(*rules.Definition) {}, func(d *rules.Definition) {
				d.Paused, d.Enabled = false, false
			}, func(d *rules.Definition) { d.Enabled = false },
		} {
			d := b.definition(fmt.Sprintf("d-%d-%d", i, j), edit)
			b.saveDefinitions(d)
			h := scheduler.Block{
				Definition: d.ID, Tenant: acme, Paused: d.Paused || !d.Enabled, Circuit: rules.Circuit{
					Definition: d.ID, Tenant: acme,
				},
			}
			if state != nil {
				h.Circuit = *state
				h.Circuit.Definition, h.Circuit.Tenant = d.ID, acme
				b.saveCircuits(&h.Circuit)
			}
			if h.Paused || h.Circuit.State == lessor.CircuitOpen || h.Circuit.State == lessor.CircuitHalfOpen {
				want = append(want, h)
			}
		}
	}
	got := readTwice(b, "blocks", func(v scheduler.View) (got []scheduler.Block, err error) {
		err = v.EachBlock(b.Context(), func(h scheduler.Block) error {
			got = append(got, h)
			return nil
		})
		slices.SortFunc(got, func(a, b scheduler.Block) int { return cmp.Compare(a.Definition, b.Definition) })
		return got, err
	})
	b.same("blocks", got, want)
	b.view(func(v scheduler.View) error {
		n := 0
		err := v.EachBlock(b.Context(), func(scheduler.Block) error {
			n++
			return errTest
		})
		if n != 1 || !errors.Is(err, errTest) {
			b.Errorf("after the first error it went on to %d, and returned %v", n, err)
		}
		return nil
	})
}
