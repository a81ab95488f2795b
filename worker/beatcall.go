package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lessor"
)

var errAnswers = errors.New("the server did not answer each lease")

// carryOut does what plan decided. Calls run in their own goroutines, because the loop must not wait for a server.
func (w *Worker) carryOut(ctx context.Context, r round) {
	w.enforce(r)
	for _, s := range r.reports {
		w.calls.Go(func() { w.extendOne(ctx, s) })
	}
	for calls := range slices.Chunk(r.beats, maxBeats) {
		w.calls.Go(func() { w.extendAll(ctx, calls) })
	}
}

// extendAll sends one heartbeat for many leases.
func (w *Worker) extendAll(ctx context.Context, calls []beatCall) {
	ids := make([]lessor.LeaseID, len(calls))
	patience := calls[0].ttl / 3
	for i, s := range calls {
		ids[i] = s.lease.id()
		patience = min(patience, s.ttl/3) // a second try must fit before the lease can end
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers, err := w.cfg.Client.HeartbeatAll(ctx, w.cfg.ID, ids)
	if err == nil && len(answers) != len(ids) {
		err = errAnswers
	}
	if err != nil {
		w.unanswered(ctx, err, patience, calls...)
		return
	}
	for i, a := range answers {
		w.acknowledged(calls[i], a.Beat, a.Err)
	}
}

// extendOne sends a heartbeat that carries a report.
func (w *Worker) extendOne(ctx context.Context, s beatCall) {
	patience := s.ttl / 3
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.body.WorkerID = &w.cfg.ID
	answer, err := w.cfg.Client.Heartbeat(ctx, s.lease.id(), s.body)
	w.mu.Lock()
	w.pulse.reports--
	if err != nil && transient(err) && s.lease.pending == nil {
		s.lease.pending = &s.body // there is no newer report
	}
	w.mu.Unlock()
	if err != nil && !over(err) {
		w.unanswered(ctx, err, patience, s)
		return
	}
	w.acknowledged(s, answer, err)
	w.poke()
}

// unanswered records that a heartbeat was not answered. The loop repeats it soon, as long as the leases can be alive.
func (w *Worker) unanswered(ctx context.Context, err error, patience time.Duration, calls ...beatCall) {
	w.mu.Lock()
	first := !w.pulse.missed
	w.pulse.missed, w.pulse.holdOff = true, time.Now().Add(jitter(patience/4))
	for _, s := range calls {
		s.lease.inCall, s.lease.failed = false, true
	}
	w.mu.Unlock()
	if first && !errors.Is(ctx.Err(), context.Canceled) {
		w.log.Warn("A heartbeat was not answered; it will be tried again", "leases", len(calls), "error", err)
	}
	w.poke()
}

// acknowledged processes the answer to the heartbeat of one lease.
func (w *Worker) acknowledged(s beatCall, answer lessor.HeartbeatAnswer, err error) {
	l := s.lease
	l.inbox.add(answer.Messages)
	start := false
	w.mu.Lock()
	l.inCall, l.failed = false, false
	switch {
	case err == nil:
		w.pulse.missed = false
		if l.known.until(s.sent) > 0 {
			l.known = s.sent
		}
		l.counted = max(l.counted, s.beat)
		l.pace = paceOf(answer.HeartbeatAfterMS, l.ttl)
		l.ttl = max(l.ttl, 3*l.pace) // the grant of a repeated request carried only the rest of its ttl
		if start = l.phase == granted; start {
			l.phase, l.counted = running, -1 // start makes the first beat
		}
	case over(err) && l.phase == granted:
		w.freeLocked(l)
		w.forgetLocked(l)
		l.phase = ending // another heartbeat may be on its way, and its answer must not free the place again
	case over(err) && l.phase == running:
		l.gone = true
	}
	gone := l.gone
	w.mu.Unlock()
	switch {
	case start:
		w.start(l)
	case gone:
		w.stop(l, w.lossOf(l, err))
	case err == nil && answer.CancelRequested:
		w.stop(l, ErrCancelled)
	}
}

// lossOf returns ErrLeaseLost with the reason for which the server ended l. The server can notice the end of
// max_runtime_s a moment before the worker does.
func (w *Worker) lossOf(l *lease, err error) error {
	e, ok := errors.AsType[*lessor.Error](err)
	if !ok || e.EndedReason == "" {
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
	if left, limited := l.runtimeLeft(l.asked, w.now()); limited && left <= 0 && e.EndedReason == "failed" {
		return ErrMaxRuntime
	}
	return fmt.Errorf("%w: %s", ErrLeaseLost, e.EndedReason)
}

// report queues a report, in place of one that was not sent yet.
func (w *Worker) report(l *lease, body lessor.Heartbeat) {
	w.mu.Lock()
	first := l.pending == nil
	l.pending = &body
	w.mu.Unlock()
	if first {
		w.poke()
	}
}

// paceOf returns how often the server wants a heartbeat, or a third of the ttl if it did not say.
func paceOf(afterMS int64, ttl time.Duration) time.Duration {
	if afterMS <= 0 {
		return ttl / 3
	}
	return time.Duration(afterMS) * time.Millisecond
}
