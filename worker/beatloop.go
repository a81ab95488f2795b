package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"lessor"
)

const (
	// maxBeats is how many leases one heartbeat call may name.
	maxBeats = 1000
	// maxReports bounds the concurrent heartbeat calls that carry a report.
	maxReports = 16
	// reportEvery is how often the progress of one lease is sent. The server keeps no more.
	reportEvery = time.Second
	// wallEvery is how often the loop reads the wall clock: monotonic timers do not see that the machine slept.
	wallEvery = time.Second
)

// pulse holds the timing of heartbeats. Guarded by Worker.mu.
type pulse struct {
	at      moment    // of the last round
	share   float64   // of the interval until the next round; random, so that workers do not beat in step
	holdOff time.Time // no batched heartbeat is sent before this time
	missed  bool      // the last heartbeat was not answered
	reports int       // heartbeats with a report that are on their way
}

// beatCall is the heartbeat of one lease that is about to be sent.
type beatCall struct {
	lease *lease
	sent  moment
	ttl   time.Duration
	beat  int64 // the latest beat, which the call reports
	body  lessor.Heartbeat
}

// newBeatCall needs w.mu.
func (w *Worker) newBeatCall(l *lease) beatCall {
	return beatCall{lease: l, sent: w.now(), ttl: l.ttl, beat: l.beats.last.Load()}
}

// heartbeatLoop extends the leases whose work moves, all in one call per interval, and stops the handlers of those
// that it could not extend.
func (w *Worker) heartbeatLoop(ctx context.Context) {
	timer := time.NewTimer(wallEvery)
	defer timer.Stop()
	for {
		r := w.plan(w.now())
		w.carryOut(ctx, r)
		timer.Reset(r.next)
		select {
		case <-timer.C:
		case <-w.wake:
		case <-ctx.Done():
			return
		}
	}
}

// round is what the heartbeat loop has to do now.
type round struct {
	beats    []beatCall    // sent together
	reports  []beatCall    // sent one by one, each with its report
	stop     []*lease      // leases that may end soon
	overtime []*lease      // attempts that exceeded their max_runtime_s
	stuck    []*lease      // handlers that did not return in time
	silent   []*lease      // handlers that have not called Beat for long
	next     time.Duration // until the next round
}

func (r *round) nextWithin(in time.Duration) { r.next = min(r.next, max(in, time.Millisecond)) }

// plan decides what is due now, and when the next round is.
func (w *Worker) plan(now moment) round {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := round{next: wallEvery}
	interval := w.intervalLocked()
	if interval == 0 { // there are no leases
		w.pulse.at = now
		return r
	}
	due := w.pulse.at.until(now) >= interval
	if due {
		w.pulse.at, w.pulse.share = now, 0.8+0.2*rand.Float64()
		interval = w.intervalLocked()
	}
	next := interval - w.pulse.at.until(now)
	r.nextWithin(next)
	for _, l := range w.leases {
		w.check(&r, l, now)
		w.schedule(&r, l, now, due, next)
	}
	if len(r.beats) > 0 && !due {
		w.pulse.holdOff = now.mono.Add(interval / 8) // gathers other late leases into the next call
	}
	return r
}

// intervalLocked returns the time between rounds: the shortest pace that the server asked for, or a little less.
func (w *Worker) intervalLocked() time.Duration {
	var least time.Duration
	for _, l := range w.leases {
		if least == 0 || l.pace < least {
			least = l.pace
		}
	}
	if w.pulse.share == 0 {
		return least
	}
	return time.Duration(float64(least) * w.pulse.share)
}

// schedule adds l to the heartbeats of r if a round is due or l cannot wait for the next one.
func (w *Worker) schedule(r *round, l *lease, now moment, due bool, next time.Duration) {
	if l.inCall {
		return
	}
	urgent := w.left(l, now)-next < l.ttl/6 // leaves time for a call that fails and another one
	if !l.extendable() {
		l.late.Store(urgent)
		return
	}
	if l.pending != nil && w.scheduleReport(r, l, now) {
		return
	}
	if due && l.known.until(now) >= l.pace/2 || urgent || l.failed || l.phase == granted {
		if in := w.pulse.holdOff.Sub(now.mono); in > 0 {
			r.nextWithin(in)
			return
		}
		l.inCall = true
		r.beats = append(r.beats, w.newBeatCall(l))
	}
}

// scheduleReport adds the report of l to r if it may be sent now, and reports whether it did.
func (w *Worker) scheduleReport(r *round, l *lease, now moment) bool {
	if in := reportEvery - l.reported.until(now); in > 0 {
		r.nextWithin(in)
		return false
	}
	if w.pulse.reports == maxReports {
		return false // the first call that returns wakes the loop
	}
	w.pulse.reports++
	s := w.newBeatCall(l)
	s.body, l.pending, l.reported, l.inCall = *l.pending, nil, now, true
	r.reports = append(r.reports, s)
	return true
}
