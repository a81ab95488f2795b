package worker

import (
	"fmt"
	"time"
)

// check adds l to r if its handler must be stopped, did not return in time, or is silent.
func (w *Worker) check(r *round, l *lease, now moment) {
	if l.phase == flushing || l.phase == ending || l.stuck {
		return
	}
	if !l.stopped.isZero() {
		if in := w.cfg.KillGrace - l.stopped.until(now); in > 0 {
			r.nextWithin(in)
			return
		}
		l.stuck = true
		w.stuck++
		w.notifyLocked()
		r.stuck = append(r.stuck, l)
		return
	}
	if in, limited := l.runtimeLeft(l.taken, now); limited && l.phase == running {
		if in <= 0 {
			r.overtime = append(r.overtime, l)
			return
		}
		r.nextWithin(in)
	}
	if in := w.left(l, now); in > 0 {
		r.nextWithin(in)
	} else {
		l.silent = !l.extendable()
		r.stop = append(r.stop, l)
		return
	}
	if l.phase == granted || l.handler.extendOn == ExtendOnLife {
		return
	}
	switch in := l.ttl*2/3 - l.beats.Elapsed(); {
	case in > 0:
		l.warned = false
		r.nextWithin(in)
	case !l.warned:
		l.warned = true
		r.silent = append(r.silent, l)
	}
}

// enforce stops and warns the handlers that plan found.
func (w *Worker) enforce(r round) {
	for _, l := range r.silent {
		w.mu.Lock()
		ttl := l.ttl
		w.mu.Unlock()
		w.log.Warn("No beat for two thirds of the lease's ttl: call Beat where the work moves, "+
			"or set ExtendOn: worker.ExtendOnLife for this handler", l.attrs("ttl", ttl)...)
	}
	for _, l := range r.stop {
		w.stopLate(l)
	}
	for _, l := range r.overtime {
		w.stop(l, ErrMaxRuntime)
	}
	for _, l := range r.stuck {
		w.log.Warn("A handler did not return within the kill grace: it keeps its slot, and its result is dropped",
			l.attrs("kill_grace", w.cfg.KillGrace)...)
	}
}

// stopLate stops the work of a lease that may soon belong to another worker.
func (w *Worker) stopLate(l *lease) {
	w.mu.Lock()
	why := fmt.Sprintf("no heartbeat was acknowledged for %s", l.ttl-w.margin(l.ttl))
	if l.silent {
		why = fmt.Sprintf("its handler has not called Beat for %s", l.beats.Elapsed().Round(time.Millisecond))
	}
	waiting := l.phase == granted
	if waiting {
		w.freeLocked(l)
		w.finishLocked(l, end{release: true, unstarted: true})
	}
	w.mu.Unlock()
	if !waiting {
		w.stop(l, fmt.Errorf("%w: %s", ErrLeaseLost, why))
	}
}

// stop ends the context of the handler of l, once.
func (w *Worker) stop(l *lease, cause error) {
	w.mu.Lock()
	first := l.phase == running && l.stopped.isZero()
	if first {
		l.stopped = w.now()
	}
	w.mu.Unlock()
	if !first {
		return
	}
	w.log.Info("Stopping a handler", l.attrs("cause", cause)...)
	l.cancel(cause)
	w.poke()
}
