package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"lessor/node"
)

// growthBound is how many times as much an operation may cost with much of one thing as with little of it.
const growthBound = 1.5

// tenantCap is so low that half of the tenants reach it soon, and so high that the others do not reach it in a round.
const tenantCap = 4

// extent is how much a server has of each thing that may grow.
type extent struct {
	queued   int // jobs
	tenants  int // whose jobs they are
	held     int // leases
	waiting  int // requests
	finished int // jobs that are kept
	capped   int // tenants that hold as many leases as they may
}

// few is the extent from which one thing grows at a time.
var few = extent{queued: 1_000, tenants: 1, held: 100, waiting: 10, finished: bulk}

// axis is one thing that grows.
type axis struct {
	name       string
	from, upTo extent
}

// axes returns what grows in a run of this size. With -full, queues grow to ten million jobs.
func (b *bench) axes() []axis {
	grown := func(name string, grow func(*extent)) axis {
		a := axis{name: name, from: few, upTo: few}
		grow(&a.upTo)
		return a
	}
	queued := b.size.of(1_000_000, 200_000, 2_000)
	if b.full {
		queued *= 10
	}
	tenants := grown("tenants", func(e *extent) {
		e.tenants = b.size.of(10_000, 10_000, 100)
		e.capped = e.tenants / 2
		e.held = e.capped * tenantCap
	})
	tenants.upTo.queued = 2 * tenants.upTo.tenants
	tenants.from.queued, tenants.from.held = tenants.upTo.queued, tenants.upTo.held
	return []axis{
		grown("queued jobs", func(e *extent) { e.queued = queued }),
		tenants,
		grown("held leases", func(e *extent) { e.held = b.size.of(100_000, 20_000, 300) }),
		grown("waiting requests", func(e *extent) { e.waiting = b.size.of(10_000, 10_000, 100) }),
		grown("finished jobs", func(e *extent) { e.finished = b.size.of(1_000_000, 100_000, 1_000) }),
	}
}

// growth measures what each operation costs while one thing grows, on both stores.
func growth(ctx context.Context, b *bench, db *database) error {
	b.setting(
		"each operation in calls of %d by %d callers through node, medians of %d "+
			"alternating rounds; the server is",
		probeBatch, probeCallers, b.growthRounds())
	b.setting("opened again before each round, so that no job is in its memory; start = one job for a waiting request")
	for _, store := range []struct {
		name string
		db   *database
	}{{"SQLite", nil}, {"PostgreSQL", db}} {
		for i, a := range b.axes() {
			if !strings.Contains(store.name+", "+a.name, b.axis) {
				continue
			}
			if b.size == smoke && store.db != nil && i > 0 {
				continue // tests see all that grows on the other store
			}
			if err := b.grow(ctx, store.name, store.db, a); err != nil {
				return fmt.Errorf("%s, %s: %w", store.name, a.name, err)
			}
		}
	}
	return nil
}

func (b *bench) growthRounds() int { return b.size.of(5, 3, 1) }

// grow measures one axis on one store.
func (b *bench) grow(ctx context.Context, store string, db *database, a axis) (err error) {
	small, err := b.fill(ctx, db, a.from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, small.end()) }()
	large, err := b.fill(ctx, db, a.upTo)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, large.end()) }()
	sides := []*grown{small, large}
	for r := range b.growthRounds() {
		b.note("growth: %s, %s: round %d", store, a.name, r+1)
		for _, g := range sides {
			if err := g.round(ctx); err != nil {
				return err
			}
		}
	}
	for _, g := range sides {
		if g.ready, err = b.restartAlone(ctx, g.filling, g.extent); err != nil {
			return err
		}
	}
	b.growthTable(store, a, small, large)
	return nil
}

func (b *bench) growthTable(store string, a axis, small, large *grown) {
	fmt.Fprintf(b.out, "\n  %s, %s: %+v against %+v\n", store, a.name, a.from, a.upTo)
	var rows []string
	type verdict struct {
		what  string
		times float64
	}
	var verdicts []verdict
	for _, name := range probeNames {
		s, l := small.probes[name], large.probes[name]
		cpu := median(l.costs, cost.cpuUS) / median(s.costs, cost.cpuUS)
		p50 := middle(l.p50) / middle(s.p50)
		rows = append(rows, fmt.Sprintf("%s|%.1f|%.1f|%.2f|%.2f|%.2f|%.2f", name,
			median(s.costs, cost.cpuUS), median(l.costs, cost.cpuUS), cpu, middle(s.p50), middle(l.p50), p50))
		verdicts = append(verdicts, verdict{name + ", CPU", cpu}, verdict{name + ", p50", p50})
	}
	b.table("|CPU µs|grown|times|p50 ms of a call|grown|times", rows)
	b.setting("restart: ready after %.2f and %.2f s, %.0f and %.0f MiB", small.ready.ready.Seconds(),
		large.ready.ready.Seconds(), small.ready.memory, large.ready.memory)
	for _, v := range verdicts {
		b.atMost(fmt.Sprintf("%s, %s: %s", store, a.name, v.what), v.times, growthBound)
	}
}

// middle is the median of figures; of an even number, the lower one.
func middle(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)/2]
}

// fill starts a server and brings it to an extent.
func (b *bench) fill(ctx context.Context, db *database, e extent) (_ *grown, err error) {
	s, err := b.fillable(ctx, db, func(c *node.Config) {
		if c.Tenants.DefaultCap = manyUnits; e.capped > 0 {
			c.Tenants.DefaultCap = tenantCap
		}
	})
	if err != nil {
		return nil, err
	}
	g := &grown{filling: s, db: db, extent: e, items: b.size.of(10_000, 10_000, 200), probes: map[string]*probe{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.end())
		}
	}()
	start := time.Now()
	for left := e.finished; left > 0; left -= bulk {
		n := min(left, bulk)
		if err := g.submit(ctx, n, nobody); err != nil {
			return nil, err
		}
		if err := g.workBatches(ctx, n); err != nil {
			return nil, err
		}
	}
	holders := nobody
	if e.capped > 0 {
		holders = mixed(e.held, e.capped, 0)
	}
	if g.leases, err = g.hold(ctx, e.held, holders); err != nil {
		return nil, err
	}
	if err := g.submit(ctx, e.queued, mixed(e.queued, e.tenants, 0)); err != nil {
		return nil, err
	}
	b.note("growth: filled with %+v in %s", e, time.Since(start).Round(time.Second))
	return g, nil
}

// mixed distributes n jobs evenly over tenants, beginning with tenant first, in a random order that is the same in each
// run. The first jobs of the tenants then lie pages apart, as they do when tenants submit independently.
func mixed(n, tenants, first int) func(int) *string {
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	ids := make([]string, tenants)
	for i := range ids {
		ids[i] = tenantID(first + i)
	}
	return func(i int) *string { return &ids[order[i]%tenants] }
}
