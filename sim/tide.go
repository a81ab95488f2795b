package main

import "time"

// tide is the traffic: some minutes in which everybody acts, then still water in which only timers, the heartbeats and
// ends of leases, and faults go on. What waits for a time is met by silence as well as by traffic, and an hour costs
// little.
type tide struct {
	out     bool // the water is still
	turnsAt time.Duration
}

// ebbAndFlow turns the tide.
func (w *world) ebbAndFlow(t *task) {
	r := w.rng("tide")
	for ; !w.quiet; w.tide.out = !w.tide.out {
		long := time.Duration(30+r.IntN(120)) * time.Second
		if w.tide.out {
			long = time.Duration(60+r.IntN(660)) * time.Second
		}
		w.tide.turnsAt = w.now + long
		t.sleep(long)
	}
}

// still reports whether nobody begins anything new. In the calm at the end, workers take what is left.
func (w *world) still() bool { return w.tide.out && !w.quiet }

// rest sleeps, and then until the tide is in.
func (c *client) rest(d time.Duration) {
	c.sleep(d)
	for c.world.still() {
		c.sleep(c.world.tide.turnsAt - c.world.now)
	}
}
