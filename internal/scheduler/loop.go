package scheduler

import (
	"context"
	"errors"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// loop is the state of the one goroutine that writes the store. No other goroutine has a pointer to it, except those
// that await a pending commit: these use only what is safe for them, as the comments say.
type loop struct {
	*Scheduler
	rare []rareWork // what has a transaction of its own when it is due

	fold    *fold.Fold // nil = must be rebuilt
	keys    *knownKeys
	pending []*pendingCommit // oldest first; none = the fold equals the tables
	works   []*work          // of this step
	parked  parked

	settings settings
	reload   bool             // another node changed the settings
	alerted  map[alertOf]bool // definitions with an open alert that this node may have to clear
	starving starvingJob
	// mismatched are jobs that were chosen and found to be of another lane, and how often.
	mismatched map[lessor.JobID]int

	answered int // calls that the last pending commit answered
	linger   linger
	faults   []time.Time // when the last steps panicked

	began          time.Time          // for the monotonic part of clock
	clock          rules.ClockReading // the last reading of the store's clock
	servedAt       time.Time          // when service was last noted
	followedAt     time.Time          // when changes of other nodes were last read
	followersUntil time.Time          // how long a report of followers on another node counts
	// beatsRefused says that the store failed heartbeats since service was last noted. No worker could send one in that
	// time, whatever was noted meanwhile here or on a node that is idle: service begins again.
	beatsRefused bool
	wentBack     string // how the store was seen to go back, until an alert is raised

	correction correction
	retaining  retaining
	failing    failing        // safe for every goroutine
	expected   []expected     // jobs for which a worker should ask
	expectAt   lessor.Instant // when one should have asked for the next of them; 0 = none is watched
	expectsOld bool           // jobs from before the start are among them
	braked     lessor.Instant // the end of the brake about which no alert is open any more
}

// newLoop returns the loop of s.
func newLoop(s *Scheduler) *loop {
	l := &loop{
		Scheduler: s, began: s.now(), parked: newParked(), alerted: map[alertOf]bool{}, braked: -1,
		correction: correction{due: true},
	}
	l.rare = []rareWork{
		{func() bool { return l.wentBack != "" }, l.raiseWentBack},
		{func() bool { return l.correction.due }, l.correct},
		{l.tickDue, l.tick},
		{l.missingDue, l.raiseMissing},
		{l.failedDue, l.raiseFailed},
		{l.brakeIsOver, l.clearBrake},
		{l.retainDue, l.retain},
	}
	return l
}

// run waits for something to do, and does it, until ctx is done.
func (l *loop) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		ready := l.calls.Ready(l.minCalls())
		if len(l.pending) == maxPending {
			ready = nil
		}
		var wait time.Duration
		var err error
		select {
		case <-ctx.Done():
			_ = l.awaitAll(ctx) // it answers the callers
			return nil
		case <-l.oldestDone():
			wait, err = l.settle(ctx)
		case <-ready:
			wait, err = l.step(ctx, l.calls.Take(batchLimit))
		case <-timer.C:
			wait, err = l.step(ctx, l.calls.Take(batchLimit))
		}
		if errors.Is(err, ErrBroken) {
			return err
		}
		if !l.restAfterFaults(ctx) {
			return nil
		}
		timer.Reset(wait)
	}
}

// step answers calls: it brings the fold up to date, runs one pass, commits it and answers. It returns the time after
// which it must be called again if no call arrives. The only goroutine that it starts awaits a commit.
func (l *loop) step(ctx context.Context, calls []op) (time.Duration, error) {
	return l.safely(func() error {
		w := sortCalls(calls)
		l.works = append(l.works, w)
		if err := l.prepare(ctx, w); err != nil {
			l.refuse(w.all(), err)
			return err
		}
		if w.empty() && !l.wakeByTime() {
			return nil
		}
		return l.commit(ctx, w)
	})
}

// settle makes room for the next commit when the oldest has ended.
func (l *loop) settle(ctx context.Context) (time.Duration, error) {
	return l.safely(func() error { return l.awaitOldest(ctx) })
}
