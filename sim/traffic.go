package main

import "time"

// traffic alternates: for some minutes all callers act, then there are only timers, the heartbeats and ends of leases,
// and faults. So waits end during silence as well as during traffic, and a simulated hour costs little.
type traffic struct {
	paused  bool
	turnsAt time.Duration
}

// alternateTraffic pauses and resumes the traffic.
func (w *world) alternateTraffic(t *task) {
	r := w.rng("tide")
	for ; !w.quiet; w.traffic.paused = !w.traffic.paused {
		long := time.Duration(15+r.IntN(60)) * time.Second
		if w.traffic.paused {
			if long = time.Duration(60+r.IntN(660)) * time.Second; w.plan.Storm {
				long /= 20
			}
		}
		w.traffic.turnsAt = w.now + long
		t.sleep(long)
	}
}

// trafficPaused reports whether callers begin nothing new. In the calm at the end, workers take what is left.
func (w *world) trafficPaused() bool { return w.traffic.paused && !w.quiet }

// rest sleeps for d, and then until there is traffic.
func (c *client) rest(d time.Duration) {
	c.sleep(d)
	for c.world.trafficPaused() {
		c.sleep(c.world.traffic.turnsAt - c.world.now)
	}
}
