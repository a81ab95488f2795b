package main

import (
	"math"
	"slices"
	"time"

	"lessor"
)

// faults is the present state of the faults.
type faults struct {
	downUntil, hangUntil, fullUntil, loopUntil time.Duration
	commits                                    float64 // the share of commits that fail
	faultAt                                    time.Duration
	clock                                      lessor.Instant // the latest that the database's showed until then
}

// noteFault notes a fault that lasts for a time from now on.
func (w *world) noteFault(d time.Duration) {
	w.faults.faultAt = max(w.faults.faultAt, w.now+d)
	w.faults.clock = max(w.faults.clock, w.clock().Add(w.faults.faultAt-w.now))
}

// noFaultFor reports whether there was no fault for a time.
func (w *world) noFaultFor(d time.Duration) bool {
	return w.now-w.faults.faultAt > d || w.faults.faultAt == 0
}

// causeFaults causes the faults, one after the other.
func (w *world) causeFaults(t *task) {
	r := w.rng("evil")
	kinds := slices.DeleteFunc(slices.Clone(w.plan.Faults), func(f Fault) bool {
		return f == Drift || f == Messages || f == Workers // these happen all the time
	})
	if len(kinds) == 0 {
		return
	}
	every := min(time.Duration(20+r.IntN(300))*time.Second, w.plan.Length/4)
	if w.plan.Storm {
		every /= 7
	}
	for {
		t.sleep(time.Duration(r.ExpFloat64()*float64(every)) + time.Second)
		if w.quiet {
			return
		}
		kind := kinds[r.IntN(len(kinds))]
		long := time.Duration(r.ExpFloat64() * float64(4*time.Second))
		if r.IntN(6) == 0 {
			long *= 10
		}
		w.counts.Faults++
		w.trace.say(w, "fault", string(kind), long.String())
		w.noteFault(long)
		w.causeFault(t, kind, long)
	}
}

// causeFault causes one fault.
func (w *world) causeFault(t *task, kind Fault, long time.Duration) {
	i := w.random.IntN(len(w.nodes))
	n := w.nodes[i]
	switch kind {
	case Crash:
		if n.dead || n.stopping || n.doomed > 0 {
			return
		}
		if n.doomed = 1 + w.random.IntN(60); w.random.IntN(2) == 0 {
			n.crash()
		}
		w.revive(i, n, long)
	case Loop:
		w.loop(min(long, 20*time.Second))
	case Stop:
		if n.dead || n.stopping || n.doomed > 0 {
			return
		}
		n.stopping = true
		w.revive(i, n, 0)
	case Pause:
		n.pausedUntil = w.now + long
	case Commits:
		w.faults.commits = 0.3
		t.sleep(min(long, 5*time.Second))
		w.faults.commits = 0
		w.noteFault(0)
	case Down:
		w.faults.downUntil = w.now + long
	case Hang:
		w.faults.hangUntil = w.now + long
	case Full:
		w.faults.fullUntil = w.now + long
	case Clock:
		w.setClock()
	case Failover:
		w.failover(t, long)
	}
}

// revive restarts a node some time after its death.
func (w *world) revive(i int, n *node, after time.Duration) {
	w.spawn("init", nil, func(t *task) {
		for !n.dead {
			t.sleep(100 * time.Millisecond)
		}
		t.sleep(after)
		w.noteFault(0)
		w.start(i)
	})
}

// loop kills all nodes, and each again as soon as it is back.
func (w *world) loop(long time.Duration) {
	w.faults.loopUntil = w.now + long
	for _, n := range w.nodes {
		w.killAgain(n)
	}
}

// killAgain kills a node that has just noted that it serves, if there is a loop. The next one comes so soon after it
// that the time between two of their notes is no gap.
func (w *world) killAgain(n *node) {
	if w.now >= w.faults.loopUntil || n.dead || n.stopping || n.doomed > 0 {
		return
	}
	n.doomed = math.MaxInt // no other fault comes to it
	life := time.Duration(w.random.IntN(100)) * time.Millisecond
	away := time.Duration(400+w.random.IntN(400)) * time.Millisecond
	w.spawn("init", nil, func(t *task) {
		t.sleep(life)
		n.crash()
		t.sleep(away)
		w.noteFault(0)
		w.start(slices.Index(w.nodes, n))
	})
}

// setClock sets the database's clock by an hour at most. A step of less than a second is none: the ttl covers it.
func (w *world) setClock() {
	step := min(time.Duration(w.random.ExpFloat64()*float64(time.Minute)), time.Hour) + 1200*time.Millisecond
	if w.random.IntN(2) == 0 {
		step = -step
	}
	w.offset += step
	w.noteFault(0)
	w.known.clockSet()
	w.trace.say(w, "fault", "set clock", step.String())
}

// failover promotes a standby that has not received everything, or restores an older backup. The nodes reach it as
// through a pooler: no connection breaks. Sometimes all of them are stopped meanwhile, so that none knows of it.
func (w *world) failover(t *task, behind time.Duration) {
	standby, at := w.db.Copy(), w.now
	t.sleep(behind)
	if w.quiet {
		return
	}
	if cold := w.random.IntN(3) == 0; !cold || !w.stopAll(behind) {
		standby.Promote()
	}
	w.trace.say(w, "fault", "promote", (w.now - at).String())
	for _, n := range w.nodes {
		n.store.Repoint(standby)
	}
	w.db = standby
	w.known.wentBack(at)
	w.noteFault(0)
}

// stopAll kills all nodes and starts them again after a time, and reports whether it did. A second without any node is
// what tells a node that it must not continue the numbers of messages. If the database's clock may be set back, fences
// could be given again: nobody knows the last ones.
func (w *world) stopAll(long time.Duration) bool {
	away := func(n *node) bool { return n.dead || n.stopping || n.doomed > 0 } // it comes back at its own time
	if w.plan.has(Clock) || slices.ContainsFunc(w.nodes, away) {
		return false
	}
	for i, n := range w.nodes {
		n.crash()
		w.revive(i, n, 1200*time.Millisecond+long)
	}
	return true
}

// heal ends all faults, and wakes everybody.
func (w *world) heal() {
	w.faults = faults{faultAt: w.now, clock: w.faults.clock}
	w.noteFault(0)
	for _, n := range w.nodes {
		n.pausedUntil, n.doomed = 0, 0
	}
	for _, t := range w.queue {
		t.at = max(w.now, min(t.at, w.now+time.Second))
	}
	w.reorder()
}
