package memory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// Definitions implements scheduler.View.
func (v *view) Definitions(_ context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	s := v.read("read definitions")
	for _, id := range ids {
		if d, ok := s.defined.get(key{text: id}); ok {
			ds[id] = new(*d)
		}
	}
	return ds, v.err
}

// LockDefinitions implements scheduler.Tx. It remembers those that are not there: see SaveDefinitions.
func (t *tx) LockDefinitions(_ context.Context, ids []string) (map[string]*rules.Definition, error) {
	ds := make(map[string]*rules.Definition, len(ids))
	err := t.do("lock definitions", func() error {
		if t.missing == nil {
			t.missing = map[string]bool{}
		}
		for _, id := range slices.Sorted(slices.Values(ids)) {
			k := key{text: id}
			if t.state.defined.has(k) {
				if err := t.acquire(lock{"definition", k}); err != nil {
					return err
				}
			}
			if d, ok := t.state.defined.get(k); ok {
				ds[id] = new(*d)
			} else {
				t.missing[id] = true
			}
		}
		t.readClock()
		return nil
	})
	return ds, err
}

// DueDefinitions implements scheduler.Tx. It passes over those that another node decides about.
func (t *tx) DueDefinitions(_ context.Context, now lessor.Instant, limit int) (due []*rules.Definition, err error) {
	err = t.do("lock due definitions", func() error {
		for _, d := range t.state.defined.all() {
			if d.DueAt > 0 && d.DueAt <= now {
				due = append(due, d)
			}
		}
		slices.SortStableFunc(due, func(a, b *rules.Definition) int { return cmp.Compare(a.DueAt, b.DueAt) })
		n := 0
		for _, d := range due {
			if n < limit && t.try(lock{"definition", key{text: d.ID}}) {
				due[n] = new(*d)
				n++
			}
		}
		due = due[:n]
		t.readClock()
		return nil
	})
	return due, err
}

// NextTick implements scheduler.View.
func (v *view) NextTick(context.Context) (next lessor.Instant, err error) {
	s := v.read("read next tick")
	for _, d := range s.defined.all() {
		if d.DueAt > 0 && (next == 0 || d.DueAt < next) {
			next = d.DueAt
		}
	}
	return next, v.err
}

// DefinitionList implements scheduler.View.
func (v *view) DefinitionList(_ context.Context, q scheduler.DefinitionQuery) (list []*rules.Definition, err error) {
	s := v.read("list definitions")
	for _, d := range s.defined.all() {
		if is(q.Tenant, d.Tenant) && (q.Module == "" || d.Module == q.Module) {
			list = append(list, new(*d))
		}
	}
	return newest(list, q.After, q.Limit, scheduler.PlaceOfDefinition), v.err
}

// newest returns a page of a list that is newest first, and by name within one instant.
func newest[T any](list []T, after *scheduler.Named, limit int, place func(T) *scheduler.Named) []T {
	if after == nil {
		after = &scheduler.Named{At: math.MaxInt64}
	}
	compare := func(a, b *scheduler.Named) int {
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Name, b.Name))
	}
	list = slices.DeleteFunc(list, func(v T) bool { return compare(place(v), after) >= 0 })
	slices.SortFunc(list, func(a, b T) int { return compare(place(b), place(a)) })
	return list[:min(len(list), max(limit, 0))]
}

// SaveDefinitions implements scheduler.Tx. Each definition gets its circuit.
func (t *tx) SaveDefinitions(_ context.Context, ds []*rules.Definition) error {
	return t.do("save definitions", func() error {
		for _, d := range slices.SortedFunc(slices.Values(ds), func(a, b *rules.Definition) int {
			return strings.Compare(a.ID, b.ID)
		}) {
			k := key{text: d.ID}
			if err := t.acquire(lock{"definition", k}); err != nil {
				return err
			}
			if t.missing[d.ID] && t.state.defined.has(k) {
				return fmt.Errorf("%w: another node has made %s", scheduler.ErrAgain, d.ID)
			}
			delete(t.missing, d.ID)
			saved := new(*d)
			fresh := !t.state.circuits.has(k)
			t.write(func(s *tables) {
				s.defined.put(k, saved)
				if fresh {
					s.circuits.put(k, &rules.Circuit{Definition: d.ID, Tenant: saved.Tenant})
				}
			})
		}
		return nil
	})
}

// DeleteDefinitions implements scheduler.Tx.
func (t *tx) DeleteDefinitions(_ context.Context, ids []string) error {
	return t.do("delete definitions", func() error {
		for _, table := range []string{"definition", "circuit"} {
			for _, id := range ids {
				if err := t.acquire(lock{table, key{text: id}}); err != nil {
					return err
				}
			}
		}
		t.write(func(s *tables) {
			for _, id := range ids {
				s.defined.drop(key{text: id})
				s.circuits.drop(key{text: id})
			}
		})
		return nil
	})
}

// LockCircuits implements scheduler.Tx.
func (t *tx) LockCircuits(_ context.Context, ids []string, wait bool) (map[string]*rules.Circuit, error) {
	cs := make(map[string]*rules.Circuit, len(ids))
	err := t.do("lock circuits", func() error {
		for _, id := range slices.Sorted(slices.Values(ids)) {
			k := key{text: id}
			if !t.state.circuits.has(k) || !wait && !t.try(lock{"circuit", k}) {
				continue
			}
			if err := t.acquire(lock{"circuit", k}); err != nil {
				return err
			}
			if c, ok := t.state.circuits.get(k); ok { // as it is after the waiting
				cs[id] = new(*c)
			}
		}
		t.readClock()
		return nil
	})
	return cs, err
}

// SaveCircuits implements scheduler.Tx.
func (t *tx) SaveCircuits(_ context.Context, cs []*rules.Circuit) error {
	saved := make([]rules.Circuit, len(cs))
	for i, c := range cs {
		saved[i] = *c
	}
	return save(t, "save circuits", "circuit", saved, func(c *rules.Circuit) key { return key{text: c.Definition} },
		func(s *tables, c *rules.Circuit) { s.circuits.put(key{text: c.Definition}, c) })
}

// Circuits implements scheduler.View.
func (v *view) Circuits(_ context.Context, q scheduler.CircuitQuery) (list []*rules.Circuit, err error) {
	s := v.read("list circuits")
	for _, c := range s.circuits.all() {
		if is(q.Tenant, c.Tenant) && (!c.Closed() || c.Failures != 0) {
			list = append(list, new(*c))
		}
	}
	return newest(list, q.After, q.Limit, scheduler.PlaceOfCircuit), v.err
}

// EachBlock implements scheduler.View.
func (v *view) EachBlock(_ context.Context, fn func(scheduler.Block) error) error {
	s := v.read("read blocks")
	for k, d := range s.defined.all() {
		c, ok := s.circuits.get(k)
		held := d.Paused || !d.Enabled
		if !ok || !held && c.Closed() {
			continue
		}
		if err := fn(scheduler.Block{Definition: d.ID, Tenant: c.Tenant, Paused: held, Circuit: *c}); err != nil {
			return err
		}
	}
	return v.err
}
