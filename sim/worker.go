package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// worker leases jobs and works on them, well or badly.
type worker struct {
	*client
	name  string
	held  []*heldLease
	old   []*heldLease // leases that ended, which it may use all the same
	types []string
	asked int
	last  *lessor.LeaseRequest // which it may repeat
}

// heldLease is a lease as its worker sees it.
type heldLease struct {
	lease    *knownLease
	tookAt   time.Duration
	beatAt   time.Duration
	endAt    time.Duration
	end      string // how it means to end: completed, failed, cancelled, released, waiting, or silent
	seen     int64  // the last message that it received
	numbered int    // the highest number of an entry of the journal that it was told
}

// work runs a worker.
func (w *world) work(t *task, i int) {
	k := &worker{name: fmt.Sprintf("worker-%d", i), client: w.client(t, w.callerOf(i))}
	for range k.random.IntN(3) {
		k.types = append(k.types, jobTypes[k.random.IntN(len(jobTypes))])
	}
	for {
		if w.quiet {
			k.types = nil
		} else if w.plan.has(Workers) && k.chance(0.3) {
			k.mishap()
		}
		switch g := k.due(); {
		case g != nil && g.end == "silent":
			k.drop(g) // it forgets what it never worked on
		case g != nil && k.chance(10):
			k.turn()
		case g != nil && w.now >= g.endAt:
			k.finish(g)
		case g != nil:
			k.beat(g)
		case w.trafficPaused():
		case len(k.held) < 4 && k.chance(60):
			k.request()
		case k.chance(5):
			k.misbehave()
		case len(k.held) > 0:
			k.report(k.held[k.random.IntN(len(k.held))])
		}
		k.sleep(k.pause())
	}
}

// report sends journal entries or output of an attempt.
func (k *worker) report(g *heldLease) {
	switch {
	case g.end == "silent":
	case k.chance(50):
		k.journal(g)
	default:
		k.print(g)
	}
}

// mishap suspends the worker for a time, and may restart it first.
func (k *worker) mishap() {
	if k.chance(50) {
		k.old, k.held = append(k.old, k.held...), nil // it was restarted, and has forgotten its leases
	}
	k.sleep(time.Duration(k.random.ExpFloat64() * float64(2*k.world.config.TTL)))
}

// due returns the lease that needs a call of the worker now; nil = none.
func (k *worker) due() *heldLease {
	for _, g := range k.held {
		if k.world.now >= g.endAt || g.end != "silent" && k.world.now >= g.beatAt {
			return g
		}
	}
	return nil
}

// pause returns how long the worker has nothing to do.
func (k *worker) pause() time.Duration {
	next := k.world.now + time.Duration(k.random.ExpFloat64()*float64(k.world.tempo))
	if k.world.trafficPaused() {
		next = k.world.traffic.turnsAt
	}
	for _, g := range k.held {
		if g.end != "silent" {
			next = min(next, g.endAt, g.beatAt)
		}
	}
	return max(time.Millisecond, next-k.world.now)
}

// request asks for work.
func (k *worker) request() {
	r := lessor.LeaseRequest{WorkerID: &k.name, Types: k.types}
	k.asked++
	switch {
	case k.world.quiet:
		r.MaxLeases, r.WaitMS = new(int64(4)), new(int64(1000))
	case k.last != nil && k.chance(10):
		r = *k.last
	default:
		k.vary(&r)
	}
	k.last = &r
	sent := k.world.now
	grants, err := call(k.client, "request", func(ctx context.Context, n *node) ([]lessor.Grant, error) {
		defer k.world.known.waits(k, &r)()
		grants, denial, err := n.Request(ctx, k.caller, r)
		if err == nil && len(grants) == 0 {
			k.denied(denial)
		}
		return grants, err
	})
	for i := range grants {
		if l := k.world.known.granted(k, &r, &grants[i], sent); err == nil {
			k.take(l)
		}
	}
}

// denied takes a denial, which must say why.
func (k *worker) denied(d *lessor.Denial) {
	if d == nil {
		k.world.fail("P3", "neither a grant nor a denial")
		return
	}
	k.world.trace.say(k.world, k.name, "denied", d.Reason)
}

// vary adds seldom used fields to a request.
func (k *worker) vary(r *lessor.LeaseRequest) {
	if k.chance(40) {
		r.WaitMS = new(int64(k.random.IntN(20_000)))
	}
	if k.chance(40) {
		r.MaxLeases = new(int64(1 + k.random.IntN(4)))
	}
	if k.chance(20) {
		r.MaxUnits = new(int64(1 + k.random.IntN(12)))
	}
	if k.chance(50) {
		r.RequestID = new(fmt.Sprintf("r%d", k.asked))
	}
	if k.chance(20) {
		r.TTLMS = new(int64(2500 + k.random.IntN(20_000)))
	}
	if k.chance(20) {
		r.WorkspaceID = new("workspace-1")
	}
}

// take decides what becomes of a lease.
func (k *worker) take(l *knownLease) {
	if slices.ContainsFunc(k.held, func(g *heldLease) bool { return g.lease == l }) {
		return // a repeated request
	}
	now := k.world.now
	g := &heldLease{
		lease: l, tookAt: now, end: "completed",
		beatAt: now + time.Duration(k.random.Float64()*float64(l.ttl)/2),
	}
	g.endAt = now + time.Duration(k.random.ExpFloat64()*float64(2*k.world.tempo))
	if !k.world.quiet {
		switch n := k.random.IntN(100); {
		case n < 15:
			g.end = "failed"
		case n < 25:
			g.end = "released"
		case n < 32:
			g.end, g.endAt = "silent", g.endAt+2*l.ttl
		case n < 35:
			g.end = "cancelled"
		case n < 40:
			g.endAt += 3 * l.ttl
		case n < 48:
			g.end = "waiting"
		case n < 51:
			g.endAt += time.Duration(k.random.IntN(600)) * time.Second
		}
	}
	k.held = append(k.held, g)
}

// drop forgets a lease; its worker may still use it.
func (k *worker) drop(g *heldLease) {
	k.held = slices.DeleteFunc(k.held, func(o *heldLease) bool { return o == g })
	if k.old = append(k.old, g); len(k.old) > 5 {
		k.old = k.old[1:]
	}
}

// beat sends a heartbeat for a lease, or for all.
func (k *worker) beat(g *heldLease) {
	g.beatAt = k.world.now + g.lease.ttl/3
	if k.chance(30) {
		k.beatAll()
		return
	}
	b := lessor.Heartbeat{WorkerID: &k.name}
	if k.chance(20) {
		b.Progress, b.Message = new(float64(k.random.IntN(100))/100), new("on the way")
		b.Checkpoint = json.RawMessage(fmt.Sprintf(`{"at":%d}`, k.world.now))
	}
	if k.chance(5) {
		b.TTLMS = new(int64(2500 + k.random.IntN(10_000)))
		g.lease.least = min(g.lease.least, time.Duration(*b.TTLMS)*time.Millisecond)
	}
	if g.seen > 0 && k.chance(70) {
		b.MessagesSeen = new(g.seen)
		g.lease.job.doubtful = max(g.lease.job.doubtful, g.seen)
	}
	seen, before, sent := g.seen, g.lease.job.confirmed, k.world.now
	a, err := call(k.client, "heartbeat", func(ctx context.Context, n *node) (lessor.HeartbeatAnswer, error) {
		return n.Heartbeat(ctx, k.caller, g.lease.id, b)
	})
	if k.heartbeatAnswered(g, a, err, sent); err == nil && !k.world.known.stale(sent) {
		if b.MessagesSeen != nil {
			g.lease.job.confirmed = max(g.lease.job.confirmed, seen)
		}
		k.receive(g, a.Messages, before, sent)
	}
}

func (k *worker) beatAll() {
	ids, held := []string{}, slices.Clone(k.held)
	for _, g := range held {
		ids = append(ids, g.lease.id.String())
		g.beatAt = k.world.now + g.lease.ttl/3
	}
	sent := k.world.now
	answers, err := call(k.client, "heartbeats", func(ctx context.Context, n *node) ([]scheduler.LeaseAnswer, error) {
		return n.HeartbeatAll(ctx, k.caller, k.name, ids)
	})
	for i, g := range held {
		if err != nil {
			k.heartbeatAnswered(g, lessor.HeartbeatAnswer{}, err, sent)
		} else {
			k.heartbeatAnswered(g, answers[i].Beat, answers[i].Err, sent)
		}
	}
}

// heartbeatAnswered handles the answer to a heartbeat.
func (k *worker) heartbeatAnswered(g *heldLease, a lessor.HeartbeatAnswer, err error, sent time.Duration) {
	k.world.known.heartbeatAnswered(g.lease, a, err, sent)
	switch {
	case err == nil && a.CancelRequested && k.chance(70):
		g.end, g.endAt = "cancelled", k.world.now
	case lessor.CodeOf(err) == lessor.CodeLeaseNotFound:
		k.drop(g)
	case err != nil:
		g.beatAt = k.world.now + 200*time.Millisecond
	}
}
