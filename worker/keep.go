package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"lessor"
)

const (
	// maxBeats is how many leases one heartbeat may name.
	maxBeats = 1000
	// maxReports bounds the single heartbeats that are under way at once.
	maxReports = 16
	// reportEvery is how often one lease's progress is sent: the server keeps no more.
	reportEvery = time.Second
	// wallEvery is how soon the end of a machine's sleep is noticed, which no monotonic timer sees.
	wallEvery = time.Second
)

// pulse is when heartbeats go out. Guarded by Worker.mu.
type pulse struct {
	at      moment    // of the last round
	share   float64   // of the interval until the next, drawn anew each round so that workers do not beat in step
	holdOff time.Time // no batched heartbeat before
	missed  bool      // the last heartbeat was not answered
	reports int       // single heartbeats under way
}

// sign is a heartbeat of one lease about to be sent.
type sign struct {
	held *held
	sent moment
	ttl  time.Duration
	beat int64 // the latest beat, which it pays for
	body lessor.Heartbeat
}

func (w *Worker) sign(l *held) sign {
	return sign{held: l, sent: w.now(), ttl: l.ttl, beat: l.beats.last.Load()}
}

// keep is the heartbeat loop: it extends the leases whose work moves, all in one call an interval, and stops the handlers of
// those that could not be extended.
func (w *Worker) keep(ctx context.Context) {
	timer := time.NewTimer(wallEvery)
	defer timer.Stop()
	for {
		r := w.look(w.now())
		w.act(ctx, r)
		timer.Reset(r.next)
		select {
		case <-timer.C:
		case <-w.wake:
		case <-ctx.Done():
			return
		}
	}
}

// round is what the heartbeat loop found to do at one look.
type round struct {
	beats   []sign        // go together
	reports []sign        // go alone, each with its report
	stop    []*held       // can have ended soon
	stuck   []*held       // have not obeyed in time
	silent  []*held       // have not beaten for long
	next    time.Duration // until the next look
}

func (r *round) lookAgain(in time.Duration) { r.next = min(r.next, max(in, time.Millisecond)) }

// look decides what is due now, and when to look again.
func (w *Worker) look(now moment) round {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := round{next: wallEvery}
	interval := w.intervalLocked()
	if interval == 0 { // nothing is held
		w.pulse.at = now
		return r
	}
	due := w.pulse.at.until(now) >= interval
	if due {
		w.pulse.at, w.pulse.share = now, 0.8+0.2*rand.Float64()
		interval = w.intervalLocked()
	}
	next := interval - w.pulse.at.until(now)
	r.lookAgain(next)
	for _, l := range w.held {
		w.judge(&r, l, now)
		w.schedule(&r, l, now, due, next)
	}
	if len(r.beats) > 0 && !due {
		w.pulse.holdOff = now.mono.Add(interval / 8) // who is late waits for others who are, too
	}
	return r
}

// intervalLocked is the time between rounds: the shortest that a server asked for, or a little less.
func (w *Worker) intervalLocked() time.Duration {
	var least time.Duration
	for _, l := range w.held {
		if least == 0 || l.pace < least {
			least = l.pace
		}
	}
	if w.pulse.share == 0 {
		return least
	}
	return time.Duration(float64(least) * w.pulse.share)
}

// schedule puts l into the heartbeats that go out now, if a round is due or l cannot wait for the next.
func (w *Worker) schedule(r *round, l *held, now moment, due bool, next time.Duration) {
	if l.inCall {
		return
	}
	urgent := w.left(l, now)-next < l.ttl/6 // enough for a call that fails, and another
	if !l.extendable() {
		l.late.Store(urgent)
		return
	}
	if l.pending != nil && w.scheduleReport(r, l, now) {
		return
	}
	if due && l.known.until(now) >= l.pace/2 || urgent || l.failed || l.phase == granted {
		if in := w.pulse.holdOff.Sub(now.mono); in > 0 {
			r.lookAgain(in)
			return
		}
		l.inCall = true
		r.beats = append(r.beats, w.sign(l))
	}
}

// scheduleReport has l's report sent now if it may be, and reports whether it is.
func (w *Worker) scheduleReport(r *round, l *held, now moment) bool {
	if in := reportEvery - l.reported.until(now); in > 0 {
		r.lookAgain(in)
		return false
	}
	if w.pulse.reports == maxReports {
		return false // whoever returns looks again
	}
	w.pulse.reports++
	s := w.sign(l)
	s.body, l.pending, l.reported, l.inCall = *l.pending, nil, now, true
	r.reports = append(r.reports, s)
	return true
}
