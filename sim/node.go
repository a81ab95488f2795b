package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
)

// node is one process of the server. A node that was restarted is another one.
type node struct {
	world *world
	name  string
	rate  float64 // how fast its clock goes

	startedAt time.Duration
	beganAt   time.Duration // when it could first commit, or again after a gap
	servedAt  time.Duration // when it last could; 0 = never
	*scheduler.Manual
	store *memory.Store

	loop        *task
	idle        bool // the loop sleeps, and may be woken
	waiting     []*task
	dead        bool
	stopping    bool
	doomed      int // statements until it crashes; 0 = it does not
	pausedUntil time.Duration
	lastID      lessor.UUID
}

// start begins a process in the place of the i-th node.
func (w *world) start(i int) {
	w.lives[i]++
	n := &node{world: w, name: fmt.Sprintf("node-%d.%d", i, w.lives[i]), rate: 1 + w.drift(uint64(i)), startedAt: w.now}
	random := w.rng(n.name)
	n.store = w.db.Open(n.name)
	cfg := w.config
	cfg.Random, cfg.Observe = random.Float64, n.observe
	if cfg.Busy == nil {
		cfg.Sample = func() (lessor.BusyInputs, error) { return w.sample(random), nil }
	}
	n.Manual = scheduler.NewManual(&watched{n.store, n}, cfg, scheduler.Machine{
		Now: n.clock, UUID: func() lessor.UUID { return n.uuid(random) }, Secrets: reader{random},
		Await: func(ctx context.Context, done <-chan struct{}) bool { return w.current.await(ctx, done) },
		Pause: func(ctx context.Context, wake <-chan struct{}, most time.Duration) { w.current.pause(ctx, wake, most) },
		Go:    func(fn func()) { w.spawn(n.name+"/await", n, func(*task) { fn() }) },
	}, w.pace)
	w.nodes[i] = n
	n.loop = w.spawn(n.name, n, n.run)
	w.spawn(n.name+"/sample", n, func(t *task) {
		for {
			n.Sample(context.Background())
			t.sleep(10 * time.Second)
		}
	})
	if random.IntN(3) == 0 { // as in life, records are sent to few nodes
		w.spawn(n.name+"/events", n, n.follow)
	}
	w.spawn(n.name+"/lanes", n, func(t *task) {
		for {
			t.sleep(w.pace.Lanes)
			n.ScanLanes(context.Background())
		}
	})
}

// run is the loop of the process.
func (n *node) run(t *task) {
	ctx := context.Background()
	for !n.stopping {
		wait, err := n.Step(ctx)
		if errors.Is(err, scheduler.ErrBroken) {
			n.crash()
		}
		n.idle = true
		t.sleep(time.Duration(float64(wait) / n.rate))
		n.idle = false
	}
	n.Stop(ctx)
	n.dead = true
	n.store.Kill() // nothing is at work any more
	n.settle()
}

// follow reads the stream of all records. It must not lose an entry without saying so.
func (n *node) follow(t *task) {
	t.sleep(5 * time.Second)
	follower, err := n.Subscribe(context.Background(), scheduler.Caller{}, 0)
	if err != nil {
		return
	}
	for last := uint64(0); ; t.sleep(5 * time.Second) {
		for _, e := range follower.Take(math.MaxInt) {
			if last != 0 && e.ID != last+1 && !e.Gap {
				n.world.fail("events", "%s: entry %d after entry %d, and no gap", n.name, e.ID, last)
			}
			last = e.ID // 0 after a gap
		}
	}
}

// settle wakes the tasks of the process that have what they wait for, and its loop if it has work.
func (n *node) settle() {
	rest := n.waiting[:0]
	for _, t := range n.waiting {
		if !n.dead && !n.world.over {
			select {
			case <-t.done:
				t.got = true
			default:
				rest = append(rest, t)
				continue
			}
		}
		n.world.wake(t, n.world.now)
	}
	clear(n.waiting[len(rest):])
	n.waiting = rest
	if n.idle && !n.dead && n.Wants() {
		n.idle = false
		n.world.wake(n.loop, n.world.now)
	}
}

// crash ends the process as kill -9 does. If its own code runs now, it ends with it.
func (n *node) crash() {
	w := n.world
	w.trace.say(w, n.name, "crash", "")
	w.noteFault(0)
	n.dead = true
	n.store.Kill()
	for _, t := range w.queue {
		if t.process() == n {
			t.at = w.now
		}
	}
	w.reorder()
	n.settle()
	if t := w.current; t != nil {
		t.mustLive()
	}
}

// clock is the monotonic clock of the process.
func (n *node) clock() time.Time { return epoch.Add(n.mono()) }

func (n *node) mono() time.Duration { return time.Duration(float64(n.world.now) * n.rate) }

// uuid makes ids that rise, as those of a process do.
func (n *node) uuid(random *rand.Rand) (id lessor.UUID) {
	millis := uint64(n.clock().UnixMilli())<<16 | 0x7000
	if last := binary.BigEndian.Uint64(n.lastID[:8]); millis <= last {
		millis = last + 1
	}
	binary.BigEndian.PutUint64(id[:8], millis)
	binary.BigEndian.PutUint64(id[8:], random.Uint64()&^(3<<62)|2<<62)
	n.lastID = id
	return id
}

// explained are the errors of commits that a fault of the world explains, or another node.
var explained = []error{
	scheduler.ErrFull, scheduler.ErrUnreachable, scheduler.ErrUnknownOutcome, scheduler.ErrAgain, scheduler.ErrWentBack,
	fold.ErrStale, context.Canceled,
}

// observe gets the result of every commit: an error that nothing explains is a bug, and so is a panic.
func (n *node) observe(s scheduler.Stats) {
	is := func(e error) bool { return errors.Is(s.Err, e) }
	if s.Err != nil && !n.dead && !slices.ContainsFunc(explained, is) {
		n.world.fail("fault", "%s: %v", n.name, s.Err)
	}
	c := &n.world.counts
	c.Grants, c.Ends = c.Grants+s.Granted, c.Ends+len(s.Ended)
	if s.MassExpiry {
		c.Brakes++
	}
}

// reader reads random bytes.
type reader struct{ *rand.Rand }

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return len(p), nil
}
