package worker

import (
	"context"
	"sync/atomic"
	"time"

	"lessor"
)

// phase is where a lease is in the worker.
//
//	granted ──heartbeat acknowledged──► running ──handler returned──► ending ──acknowledged, or over──► (forgotten)
//
// A grant whose request was sent long ago begins as granted: whether it still lives is asked before its handler starts. All
// others begin as running.
type phase uint8

const (
	granted phase = iota
	running
	ending
)

// held is one lease of this worker, from its grant until its end is acknowledged.
type held struct {
	grant   lessor.Grant
	handler *handler
	beats   Heartbeat
	late    atomic.Bool // a beat should wake the heartbeat loop: the next round may be too late for it
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// Guarded by Worker.mu.
	phase    phase
	ttl      time.Duration // from the latest call by which we know that the lease lives; less for a grant that was asked for again
	taken    moment        // when the grant arrived
	known    moment        // when the latest call was sent by which we know that the lease lives
	pace     time.Duration // how often the server wants a heartbeat
	counted  int64         // the latest beat that an acknowledged heartbeat has paid for
	inCall   bool          // a heartbeat for it is under way
	failed   bool          // its last heartbeat was not answered
	warned   bool          // of its silence
	stopped  moment        // when its context was ended
	silent   bool          // it was stopped because it did not beat
	gone     bool          // the server says that the lease is over
	stuck    bool          // its handler did not obey; what it returns is refused
	pending  *lessor.Heartbeat
	reported moment // when the last report was sent
	end      end
}

func newHeld(work context.Context, g lessor.Grant, h *handler, since moment) *held {
	l := &held{grant: g, handler: h, known: since, counted: -1, ttl: time.Duration(g.Lease.TTLMS) * time.Millisecond}
	l.pace = paceOf(g.Lease.HeartbeatAfterMS, l.ttl)
	l.ctx, l.cancel = context.WithCancelCause(work)
	return l
}

func (l *held) id() lessor.LeaseID { return l.grant.Lease.ID }

// attrs name the lease in a log line.
func (l *held) attrs(more ...any) []any {
	return append([]any{"job_id", l.grant.Job.ID, "type", l.grant.Job.Type, "attempt", l.grant.Job.Attempt, "lease_id", l.id()}, more...)
}

// margin is how long before a lease can have ended its handler is stopped, so that it can return in time.
func (w *Worker) margin(ttl time.Duration) time.Duration { return min(ttl/10, w.cfg.KillGrace) }

// left returns how long l's handler may go on unless another heartbeat is acknowledged; before it starts, for how long that
// is tried.
func (w *Worker) left(l *held, now moment) time.Duration {
	if l.phase == granted {
		return l.ttl - l.taken.until(now)
	}
	return l.ttl - w.margin(l.ttl) - l.known.until(now)
}

// extendable reports whether l may join a heartbeat: its handler has beaten since the last that was acknowledged, or needs
// not to. While an end waits to be sent the work is done, which is progress enough.
func (l *held) extendable() bool {
	return !l.gone && !l.stuck && (l.phase != running || l.handler.extendOn == ExtendOnLife || l.beats.last.Load() != l.counted)
}

// take holds what was granted to a request first sent at since, and starts the handlers.
func (w *Worker) take(work context.Context, grants []lessor.Grant, since moment) {
	now := w.now()
	var start []*held
	w.mu.Lock()
	for _, g := range grants {
		if w.held[g.Lease.ID] != nil {
			continue
		}
		l := newHeld(work, g, w.handlers[g.Job.Type], since)
		l.taken = now
		w.held[l.id()] = l
		if w.stopping || l.handler == nil {
			w.finishLocked(l, end{release: true, unstarted: l.handler != nil})
			continue
		}
		w.running++
		l.handler.running++
		if since.until(now) < l.pace {
			l.phase = running
			start = append(start, l)
		}
	}
	w.mu.Unlock()
	for _, l := range start {
		w.start(l)
	}
	w.poke()
}

// start runs the handler of l. Starting it is the first beat.
func (w *Worker) start(l *held) {
	l.beats.Beat()
	l.beats.Observe(func() {
		if l.late.Load() && l.late.CompareAndSwap(true, false) {
			w.poke()
		}
	})
	w.attempts.Go(func() { w.attempt(l) })
}

// freeLocked gives l's slot back.
func (w *Worker) freeLocked(l *held) {
	w.running--
	l.handler.running--
	if l.stuck {
		w.stuck--
	}
	w.poll.freed(l.handler.jobType)
	w.tellLocked()
}

// forgetLocked drops l: nothing is left to do for it.
func (w *Worker) forgetLocked(l *held) {
	delete(w.held, l.id())
	l.cancel(nil)
	w.tellLocked()
}

// tellLocked wakes who waits for room, or for the end.
func (w *Worker) tellLocked() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// poke has the heartbeat loop look again.
func (w *Worker) poke() { poke(w.wake) }

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
