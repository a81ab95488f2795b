package main

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
)

// epoch is when every world begins.
var epoch = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a cluster with its database, its callers and its faults, on a clock of its own.
type world struct {
	plan   Plan
	config scheduler.Config
	pace   scheduler.Pace
	random *rand.Rand // decides who goes on, and when

	now     time.Duration // true time since epoch; what clocks say depends on them
	queue   queue
	current *task
	idle    []*coroutine // of tasks that have ended
	over    bool         // all tasks end
	quiet   bool         // no new work and no faults
	traffic traffic
	tempo   time.Duration // about the time between two acts of a worker

	db     *memory.Database
	rate   float64       // how fast the clock of the database goes
	offset time.Duration // by which it was set
	nodes  []*node
	lives  []int
	faults faults

	known   *knowledge
	trace   trace
	counts  counts
	failure *BrokenError
}

// counts is what happened in a world.
type counts struct {
	Steps, Calls, Commits, Grants, Ends, Brakes, Faults int
}

// BrokenError is a promise that was broken.
type BrokenError struct {
	Promise string
	Detail  string
	At      time.Duration
}

func (f *BrokenError) Error() string {
	return fmt.Sprintf("%s broken at %v: %s", f.Promise, f.At, f.Detail)
}

// newWorld returns the world of a plan, at its beginning. What happens in it is written to out, if that is not nil.
func newWorld(p Plan, out io.Writer) *world {
	w := &world{
		plan: p, nodes: make([]*node, p.Nodes), lives: make([]int, p.Nodes), trace: trace{fnvBasis, out},
	}
	w.random = w.rng("hand-overs")
	w.configure(w.rng("configuration"))
	w.rate = 1 + w.drift(99)
	w.db = memory.New(memory.Options{
		Clock: w.clock, Mono: w.mono, Stepper: w, Committed: w.checkCommit, Key: [32]byte{byte(p.Seed)},
	})
	w.known = newKnowledge(w)
	for i := range w.nodes {
		w.start(i)
	}
	return w
}

// Run simulates the whole life of a world: traffic and faults, then calm until every job has ended.
func Run(p Plan, out io.Writer) (counts, uint64, *BrokenError) {
	w := newWorld(p, out)
	w.people()
	for w.step(p.Length) {
	}
	if w.failure == nil {
		w.calm()
	}
	if w.failure == nil {
		w.known.closing()
	}
	w.end()
	return w.counts, w.trace.sum, w.failure
}

// end ends all tasks, so that nothing of this world stays in memory.
func (w *world) end() {
	w.over = true
	for {
		for _, n := range w.nodes {
			n.settle()
		}
		if len(w.queue) == 0 {
			break
		}
		t, _ := heap.Pop(&w.queue).(*task)
		w.current = t
		t.resume()
	}
	for _, c := range w.idle {
		c.stop()
	}
}

// fail notes the first promise that was broken; the world ends.
func (w *world) fail(promise, format string, args ...any) {
	if w.failure == nil && !w.over {
		w.failure = &BrokenError{promise, fmt.Sprintf(format, args...), w.now}
		w.trace.say(w, promise, "broken", w.failure.Detail)
	}
}

// panicked notes a panic of a task, which is a bug of the server or of the simulator.
func (w *world) panicked(t *task, v any) { w.fail("panic", "%s: %v\n%s", t.name, v, debug.Stack()) }

// rng returns the random numbers of a task, which do not depend on what other tasks draw.
func (w *world) rng(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	return rand.New(rand.NewPCG(w.plan.Seed, h.Sum64()))
}

// drift is how much faster than true time a clock runs: up to 100 ppm, as quartz does.
func (w *world) drift(of uint64) float64 {
	if !w.plan.has(Drift) {
		return 0
	}
	return (rand.New(rand.NewPCG(w.plan.Seed, of)).Float64() - 0.5) * 2e-4
}

// clock is what the clock of the database says.
func (w *world) clock() lessor.Instant { return lessor.At(epoch.Add(w.mono("") + w.offset)) }

// mono is the monotonic clock of a node, or of the database.
func (w *world) mono(name string) time.Duration {
	if name != "" {
		for _, n := range w.nodes {
			if n != nil && n.name == name {
				return n.mono()
			}
		}
	}
	return time.Duration(float64(w.now) * w.rate)
}

// reorder puts the queue in order after tasks were given another time.
func (w *world) reorder() { heap.Init(&w.queue) }

// read reads the tables from outside.
func (w *world) read(fn func(v scheduler.View) error) {
	current := w.current
	w.current = nil
	defer func() { w.current = current }()
	if err := w.db.View(fn); err != nil {
		w.fail("read", "%v", err)
	}
}

// trace is what happened in a world, as a hash (FNV-1a) and, if it is printed, as text. The hash is computed here:
// package hash/fnv would allocate at every step.
type trace struct {
	sum uint64
	out io.Writer // nil = nobody reads it
}

// The numbers of FNV-1a with 64 bits.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// step notes that a task went on.
func (t *trace) step(now time.Duration, who *task) {
	for i := range 8 {
		t.sum = (t.sum ^ uint64(byte(now>>(8*i)))) * fnvPrime
	}
	t.sum = (t.sum ^ uint64(byte(len(who.name)))) * fnvPrime
}

// say notes what a task did, and with which result.
func (t *trace) say(w *world, who, what, then string) {
	for _, s := range [...]string{who, what, then} {
		for i := range len(s) {
			t.sum = (t.sum ^ uint64(s[i])) * fnvPrime
		}
	}
	if t.out != nil {
		_, _ = fmt.Fprintf(t.out, "%12v %-14s %-12s %s\n", w.now.Round(time.Microsecond), who, what, then)
	}
}
