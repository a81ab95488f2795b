package scheduler

import (
	"bufio"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"io"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// serveEvery is how often an idle scheduler notes that it serves: a quarter of the gap that moves the floor, so that
// a late timer is not taken for an outage.
const serveEvery = 250 * time.Millisecond

// serveBusy is how often a busy one does: its transactions show as much to callers, and so it may be late by a few of them.
const serveBusy = serveEvery / 2

// followEvery is how often a node on which requests wait looks at what other nodes did: they are woken within 150 ms.
const followEvery = 100 * time.Millisecond

// retryStore is how long to wait before the fold is rebuilt again after the store failed.
const retryStore = 500 * time.Millisecond

// loop is the state of the one goroutine that writes the store. No other goroutine has a pointer to it, except those that
// await a commit (pendingCommit) and use what says so below.
type loop struct {
	*Scheduler

	fold     *fold.Fold // nil = must be rebuilt
	works    []*work    // that this turn answers
	panics   int        // turns in a row that panicked
	answered int        // how many calls the last flight that landed answered
	wentBack string     // how the store was seen to go back, until an alert is raised
	// strangers are jobs that were chosen and found to be of another lane, and how often.
	mismatched map[lessor.JobID]int
	pending    []*pendingCommit // on their way, oldest first; none = the fold equals the tables
	servedAt   time.Time
	began      time.Time  // for the monotonic part of clock
	clock      rules.Tick // the last reading of the store's clock
	correction correction
	// beatsRefused says that the store failed heartbeats since service was last noted. No worker could send one in that
	// time, whatever was noted meanwhile here or on a node that is idle: service begins anew.
	beatsRefused bool
	linger       linger
	parked       parked
	secrets      io.Reader // what lease ids are made of
	settings     settings
	reload       bool // another node changed the settings
	starving     starvingJob
	retaining    retaining
	followedAt   time.Time        // when changes of other nodes were last looked for
	alerted      map[alertOf]bool // definitions with an open alert that this node may have to clear
	failing      failing          // safe for use by those that await a commit
	expected     []expected       // jobs for which a worker should ask
	expectAt     lessor.Instant   // when one should have asked for the next of them; 0 = none is watched
	expectsOld   bool             // those from before the start are among them
	braked       lessor.Instant   // the end of the brake about which no alert is open any more
	// followedUntil is how long somebody follows the records on another node.
	followersUntil lessor.Instant
}

func newLoop(s *Scheduler) *loop {
	return &loop{
		Scheduler: s, began: time.Now(), correction: correction{due: true}, braked: -1, alerted: map[alertOf]bool{}, parked: newParked(),
		secrets: bufio.NewReader(cryptorand.Reader), // a lease takes ten bytes: the system is asked once for hundreds
	}
}

// run answers calls until ctx is done.
func (l *loop) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		do, ready := l.turn, l.calls.Ready(l.minCalls())
		if len(l.pending) == maxPending {
			ready = nil
		}
		select {
		case <-ctx.Done():
			_ = l.awaitAll(ctx) // its callers are told
			return nil
		case <-l.oldestDone():
			do = l.rest
		case <-ready:
		case <-timer.C:
		}
		l.linger = linger{}
		wait, err := l.safely(ctx, do)
		switch {
		case err != nil:
			l.setStatus(err)
			wait = retryStore
		case l.linger.calls > 0:
			wait = min(wait, l.linger.wait)
		}
		if errors.Is(err, ErrBroken) {
			return err
		}
		if !l.pauseAfterPanics(ctx) {
			return nil
		}
		timer.Reset(wait)
	}
}

// turn does what is to be done now and returns after how long to be called again if nothing arrives.
func (l *loop) turn(ctx context.Context) (time.Duration, error) {
	w := l.gather()
	l.works = append(l.works, w)
	if err := l.prepare(ctx, w); err != nil {
		l.refuse(w.all(), err)
		return 0, err
	}
	if !w.empty() || l.timeIsUp() {
		if err := l.commit(ctx, w); err != nil {
			return 0, err
		}
	}
	return l.idle(), nil
}

// rest makes room for the next commit when one has landed.
func (l *loop) rest(ctx context.Context) (time.Duration, error) {
	if err := l.awaitOldest(ctx); err != nil {
		return 0, err
	}
	return l.idle(), nil
}

// prepare sees to it that w can be answered, and answers looks at the fold, which need no transaction.
func (l *loop) prepare(ctx context.Context, w *work) error {
	l.checkWentBack()
	if w.empty() || l.fold == nil || time.Since(l.servedAt) > serveBusy {
		if err := l.serve(ctx); err != nil {
			return err
		}
	}
	if len(l.pending) == 0 && (w.empty() || time.Since(l.followedAt) > serveEvery) {
		if err := l.followIdle(ctx); err != nil {
			return err
		}
	}
	if len(w.reads) == 0 {
		return nil
	}
	if err := l.awaitAll(ctx); err != nil {
		return err
	}
	for _, c := range w.reads {
		c.fn(l)
		c.answer(nil)
	}
	return nil
}

// serve notes that calls can be answered, with a fold that equals the tables.
func (l *loop) serve(ctx context.Context) error {
	if l.beatsRefused {
		if _, err := l.store.Serve(ctx, true); err != nil { // before the tables are read, which may fail too
			_ = l.awaitAll(ctx) // its callers are told
			l.fold = nil
			return err
		}
		l.beatsRefused = false
	}
	if l.fold == nil {
		if err := l.rebuild(ctx); err != nil {
			return err
		}
	}
	serving, err := l.store.Serve(ctx, false)
	if err != nil {
		_ = l.awaitAll(ctx) // its callers are told
		l.fold = nil
		return err
	}
	l.fold.Serving, l.servedAt = serving, time.Now()
	l.lapseSettings(serving.LastBeat)
	l.noteClock(serving.LastBeat)
	if l.panics < 2 {
		l.setStatus(nil)
	}
	return nil
}

// timeIsUp reports whether something is to be done although nobody called.
func (l *loop) timeIsUp() bool {
	f, now := l.fold, l.fold.Serving.LastBeat
	f.NoteClock(now)
	return f.CheckDue(now, l.cfg.Sweep) || f.Due(now) || f.WakeTrials(now) || l.rareDue() || l.wakeParked()
}

// idle answers parked requests whose time is up and returns how long the loop may rest.
func (l *loop) idle() time.Duration {
	if l.correction.due || l.wakeParked() {
		return time.Millisecond // what came after the grants of this commit may be for those who wait
	}
	now := l.fold.Serving.LastBeat
	next := now.Add(serveEvery)
	if l.parked.size > 0 && l.store.Shared() {
		next = now.Add(followEvery)
	}
	ended, over := l.parked.over(now)
	for _, r := range ended {
		r.answer(nil)
	}
	if over != 0 {
		next = min(next, over)
	}
	if at, ok := l.fold.NextCheck(l.cfg.Sweep); ok {
		next = min(next, at)
	}
	for _, at := range []lessor.Instant{
		l.fold.DueAt, l.fold.TickAt, l.fold.TrialAt, l.retaining.at, l.expectAt, l.failing.next(), l.brakeEnd(),
	} {
		if at != 0 {
			next = min(next, at)
		}
	}
	return max(time.Millisecond, next.Sub(now))
}

var errStopping = &lessor.Error{Code: lessor.CodeUnavailable, Detail: "the server is stopping", RetryAfter: time.Second}

// refuseAll answers everything that waits when the loop has ended.
func (l *loop) refuseAll() {
	l.setStatus(errStopping)
	for _, o := range l.calls.Close() {
		o.base().answer(errStopping)
	}
	l.parked.each(func(r *requestCall) { r.answer(nil) })
	l.parked = newParked()
	l.stream.close()
}

// refuse answers ops with what a failed store means to their callers.
func (l *loop) refuse(ops []op, err error) {
	for _, o := range ops {
		if _, beat := o.(*beatCall); beat && storeFailed(err) {
			l.beatsRefused = true
		}
		o.base().answer(storeRefusal(err))
	}
}

// storeFailed reports whether err is the store's and not the calls': a heartbeat that it refused would have been accepted otherwise.
func storeFailed(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrAgain)
}

// storeRefusal turns a store's fault into what a caller can act on; other faults pass as they are.
func storeRefusal(err error) error {
	r := &lessor.Error{Code: lessor.CodeUnavailable, RetryAfter: time.Second}
	switch {
	case errors.Is(err, ErrFull):
		r.Detail = "the disk of the store is full; nothing was changed"
	case errors.Is(err, ErrUnreachable):
		r.Detail = "the store is out of reach; nothing was changed"
	case errors.Is(err, ErrUnknownOutcome):
		r.Detail, r.OutcomeUnknown = "the answer to the commit was lost; repeat with the same key", true
	case errors.Is(err, ErrBroken):
		r.Detail = "the store reported an I/O error; the server stops"
	case errors.Is(err, ErrWentBack):
		r.Detail = "the store went back to an older state; nothing was changed"
	case errors.Is(err, ErrMoved):
		r.Detail = "the store changed under the call; nothing was changed"
	case errors.Is(err, context.Canceled):
		return errStopping
	case errors.Is(err, errPanicked):
		return errPanicked
	default:
		return err
	}
	return r
}
