package main

import (
	"slices"
	"time"
)

// shrinkTries bounds the worlds that Shrink runs.
const shrinkTries = 60

// Shrink looks for a smaller plan that breaks the same promise: fewer faults, nodes, workers and tenants, less time.
func Shrink(p Plan, failure *BrokenError) (Plan, *BrokenError) {
	for tries := 0; ; {
		changed := false
		for _, smaller := range p.smaller(failure.At) {
			if tries++; tries > shrinkTries {
				return p, failure
			}
			if _, _, f := Run(smaller, nil); f != nil && f.Promise == failure.Promise {
				p, failure, changed = smaller, f, true
				break
			}
		}
		if !changed {
			return p, failure
		}
	}
}

// smaller returns plans that are a little smaller, the most promising first. failedAt is when a promise was
// broken.
func (p *Plan) smaller(failedAt time.Duration) (plans []Plan) {
	add := func(edit func(q *Plan)) {
		q := *p
		q.Faults = slices.Clone(p.Faults)
		edit(&q)
		plans = append(plans, q)
	}
	if failedAt+2*time.Second < p.Length {
		add(func(q *Plan) { q.Length = (failedAt + time.Second).Round(time.Second) })
	}
	for i := range p.Faults {
		add(func(q *Plan) { q.Faults = slices.Delete(q.Faults, i, i+1) })
	}
	for _, n := range []int{1, p.Nodes - 1} {
		if n > 0 && n < p.Nodes {
			add(func(q *Plan) { q.Nodes = n })
		}
	}
	for _, n := range []int{2, p.Workers / 2, p.Workers - 1} {
		if n > 0 && n < p.Workers {
			add(func(q *Plan) { q.Workers = n })
		}
	}
	if p.Tenants > 1 {
		add(func(q *Plan) { q.Tenants = 1 })
	}
	for _, part := range []time.Duration{p.Length / 2, p.Length * 3 / 4} {
		if part >= time.Minute {
			add(func(q *Plan) { q.Length = part.Round(time.Second) })
		}
	}
	return plans
}
