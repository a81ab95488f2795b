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

// act does what look found. Calls are made beside the loop, which must not wait for a server.
func (w *Worker) act(ctx context.Context, r round) {
	w.tell(r)
	for _, s := range r.reports {
		w.calls.Go(func() { w.extendOne(ctx, s) })
	}
	for signs := range slices.Chunk(r.beats, maxBeats) {
		w.calls.Go(func() { w.extendAll(ctx, signs) })
	}
}

// extendAll sends one heartbeat for many leases.
func (w *Worker) extendAll(ctx context.Context, signs []sign) {
	ids := make([]lessor.LeaseID, len(signs))
	patience := signs[0].ttl / 3
	for i, s := range signs {
		ids[i] = s.held.id()
		patience = min(patience, s.ttl/3) // so that another try fits before the lease can end
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers, err := w.cfg.Client.HeartbeatAll(ctx, w.cfg.ID, ids)
	if err == nil && len(answers) != len(ids) {
		err = errAnswers
	}
	if err != nil {
		w.missed(ctx, err, patience, signs...)
		return
	}
	for i, a := range answers {
		w.heard(signs[i], a.Beat, a.Err)
	}
}

// extendOne sends a heartbeat that carries a report.
func (w *Worker) extendOne(ctx context.Context, s sign) {
	patience := s.ttl / 3
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.body.WorkerID = &w.cfg.ID
	answer, err := w.cfg.Client.Heartbeat(ctx, s.held.id(), s.body)
	w.mu.Lock()
	w.pulse.reports--
	if err != nil && transient(err) && s.held.pending == nil {
		s.held.pending = &s.body // unless there is a newer one
	}
	w.mu.Unlock()
	if err != nil && !over(err) {
		w.missed(ctx, err, patience, s)
		return
	}
	w.heard(s, answer, err)
	w.poke()
}

// missed notes that a heartbeat was not answered. It is tried again soon, for as long as the leases can live.
func (w *Worker) missed(ctx context.Context, err error, patience time.Duration, signs ...sign) {
	w.mu.Lock()
	first := !w.pulse.missed
	w.pulse.missed, w.pulse.holdOff = true, time.Now().Add(jitter(patience/4))
	for _, s := range signs {
		s.held.inCall, s.held.failed = false, true
	}
	w.mu.Unlock()
	if first && !errors.Is(ctx.Err(), context.Canceled) {
		w.log.Warn("A heartbeat was not answered; it will be tried again", "leases", len(signs), "error", err)
	}
	w.poke()
}

// heard takes the answer to one lease's heartbeat.
func (w *Worker) heard(s sign, answer lessor.HeartbeatAnswer, err error) {
	l := s.held
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
		l.ttl = max(l.ttl, 3*l.pace) // the grant of a repeated request told what was left of it
		if start = l.phase == granted; start {
			l.phase, l.counted = running, -1 // the first beat comes now
		}
	case over(err) && l.phase == granted:
		w.freeLocked(l)
		w.forgetLocked(l)
	case over(err) && l.phase == running:
		l.gone = true
	}
	gone := l.gone
	w.mu.Unlock()
	switch {
	case start:
		w.start(l)
	case gone:
		w.stop(l, lostTo(err))
	case err == nil && answer.CancelRequested:
		w.stop(l, ErrCancelled)
	}
}

// lostTo says how the server ended the lease.
func lostTo(err error) error {
	if e, ok := errors.AsType[*lessor.Error](err); ok && e.EndedReason != "" {
		return fmt.Errorf("%w: %s", ErrLeaseLost, e.EndedReason)
	}
	return fmt.Errorf("%w: %w", ErrLeaseLost, err)
}

// report has a report sent soon, in place of one that was not sent yet.
func (w *Worker) report(l *held, body lessor.Heartbeat) {
	w.mu.Lock()
	first := l.pending == nil
	l.pending = &body
	w.mu.Unlock()
	if first {
		w.poke()
	}
}

// paceOf is how often the server wants a heartbeat, or a third of the ttl if it does not say.
func paceOf(afterMS int64, ttl time.Duration) time.Duration {
	if afterMS <= 0 {
		return ttl / 3
	}
	return time.Duration(afterMS) * time.Millisecond
}
