package worker

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"lessor"
)

// phase says where a lease is in the worker.
//
//	granted ─heartbeat acknowledged─► running ─handler returned─► ending ─acknowledged or over─► forgotten
//
// Most leases begin in running. A lease whose request was sent long ago begins in granted: the worker sends a
// heartbeat first, to learn whether it is still alive. A lease whose handler has printed is flushing between running
// and ending: the worker sends the rest of the output.
type phase uint8

const (
	granted phase = iota
	running
	flushing
	ending
)

// lease is one lease of this worker, from its grant until the server acknowledges its end.
type lease struct {
	grant   lessor.Grant
	handler *handler
	beats   Heartbeat
	journal *Journal
	inbox   inbox
	output  output
	late    atomic.Bool // the next beat must wake the heartbeat loop, because the next round may be too late
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// Guarded by Worker.mu.
	phase    phase
	ttl      time.Duration // counted from known; shorter for the grant of a repeated request
	asked    moment        // when its request was first sent
	taken    moment        // when the grant arrived
	known    moment        // when the latest acknowledged call was sent
	pace     time.Duration // how often the server wants a heartbeat
	counted  int64         // the latest beat that an acknowledged heartbeat has reported
	inCall   bool          // a heartbeat is on its way
	failed   bool          // the last heartbeat was not answered
	warned   bool          // the silence was logged
	stopped  moment        // when its context was ended
	silent   bool          // it was stopped because the handler did not beat
	gone     bool          // the server says that the lease is over
	stuck    bool          // the handler did not return in time; its result is dropped
	pending  *lessor.Heartbeat
	reported moment // when the last report was sent
	end      end
}

func newLease(work context.Context, g lessor.Grant, h *handler, since moment) *lease {
	l := &lease{
		grant: g, handler: h, asked: since, known: since, counted: -1,
		ttl:   time.Duration(g.Lease.TTLMS) * time.Millisecond,
		inbox: inbox{arrived: make(chan struct{}, 1)},
	}
	l.pace = paceOf(g.Lease.HeartbeatAfterMS, l.ttl)
	l.ctx, l.cancel = context.WithCancelCause(work)
	return l
}

func (l *lease) id() lessor.LeaseID { return l.grant.Lease.ID }

// attrs returns the attributes that name the lease in a log line.
func (l *lease) attrs(more ...any) []any {
	j := l.grant.Job
	return append([]any{"job_id", j.ID, "type", j.Type, "attempt", j.Attempt, "lease_id", l.id()}, more...)
}

// margin is how long before the earliest end of a lease the worker stops its handler, so that the handler can return
// in time.
func (w *Worker) margin(ttl time.Duration) time.Duration { return min(ttl/10, w.cfg.KillGrace) }

// left returns how long the handler of l may continue if no further heartbeat is acknowledged. Before the handler has
// started it returns how long the worker goes on trying.
func (w *Worker) left(l *lease, now moment) time.Duration {
	if l.phase == granted {
		return l.ttl - l.taken.until(now)
	}
	return l.ttl - w.margin(l.ttl) - l.known.until(now)
}

// runtimeLeft returns how much of the job's max_runtime_s is left if the attempt began at the given time, and whether
// there is such a limit. Only the monotonic clock counts: setting the wall clock must not end an attempt early.
func (l *lease) runtimeLeft(from, now moment) (time.Duration, bool) {
	if l.grant.Job.MaxRuntimeS == nil {
		return 0, false
	}
	return time.Duration(*l.grant.Job.MaxRuntimeS)*time.Second - now.mono.Sub(from.mono), true
}

// extendable reports whether the worker may extend l: its handler has called Beat since the last acknowledged
// heartbeat, or does not have to. The work of a lease that waits for its end to be sent is done, which counts as
// progress.
func (l *lease) extendable() bool {
	if l.gone || l.stuck {
		return false
	}
	works := l.phase == running || l.phase == flushing
	return !works || l.handler.extendOn == ExtendOnLife || l.beats.last.Load() != l.counted
}

// take registers the leases that were granted to a request first sent at since, frees the places that q has reserved
// for them, and starts their handlers.
func (w *Worker) take(work context.Context, grants []lessor.Grant, since moment, q query) {
	now := w.now()
	var start []*lease
	w.mu.Lock()
	w.reserveLocked(q, -q.most)
	w.setRushLocked(len(grants) > 0 && len(grants) == q.most)
	for _, g := range grants {
		if w.leases[g.Lease.ID] != nil {
			continue
		}
		l := newLease(work, g, w.handlers[g.Job.Type], since)
		l.taken, l.journal = now, w.journalOf(l)
		w.leases[l.id()] = l
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
	w.notifyLocked()
	w.mu.Unlock()
	for _, l := range start {
		w.start(l)
	}
	w.poke()
}

// start runs the handler of l. The start counts as the first beat.
func (w *Worker) start(l *lease) {
	l.beats.Beat()
	l.beats.Observe(func() {
		if l.late.Load() && l.late.CompareAndSwap(true, false) {
			w.poke()
		}
	})
	w.attempts.Go(func() { w.attempt(l) })
}

// freeLocked frees the slot of l.
func (w *Worker) freeLocked(l *lease) {
	w.running--
	l.handler.running--
	if l.stuck {
		w.stuck--
	}
	w.poll.freed(l.handler.jobType)
	w.notifyLocked()
}

// forgetLocked removes l, which has ended.
func (w *Worker) forgetLocked(l *lease) {
	delete(w.leases, l.id())
	l.cancel(nil)
	w.notifyLocked()
}

// notifyLocked wakes the goroutines that wait for room or for the end of leases.
func (w *Worker) notifyLocked() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// changedLocked returns a channel that the next notifyLocked closes.
func (w *Worker) changedLocked() <-chan struct{} {
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// poke wakes the heartbeat loop.
func (w *Worker) poke() { poke(w.wake) }

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// moment is a reading of both clocks. The monotonic clock stops while a machine sleeps, and the wall clock can be
// set, so the worker counts the larger of the two differences against a lease.
type moment struct{ mono, wall time.Time }

func (w *Worker) now() moment { return moment{mono: time.Now(), wall: w.wall()} }

// wallClock returns the time of day without the monotonic reading.
func wallClock() time.Time { return time.Now().Round(0) }

func (m moment) isZero() bool { return m.mono.IsZero() }

// until returns how much time has passed between m and later.
func (m moment) until(later moment) time.Duration {
	return max(later.mono.Sub(m.mono), later.wall.Sub(m.wall))
}

// jitter returns 80 to 100 % of d, so that workers do not act in step.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/5+1) }
