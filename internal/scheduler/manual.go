package scheduler

import (
	"context"
	"time"

	"lessor/internal/rules"
)

// Manual is a scheduler that its owner drives: no goroutine runs its loop, and its clock, its random numbers and its
// waiting are the owner's. The simulator drives all nodes of a cluster this way, one after the other.
type Manual struct {
	*Scheduler
	loop   *loop
	before map[rules.LaneID]int64 // the lanes that were on notice at the last scan
}

// Pace replaces the intervals of a node's repeated work; zero keeps the constant.
type Pace struct {
	Serve  time.Duration // how often an idle node notes that it serves
	Follow time.Duration // how often a node with waiting requests reads the changes of others
	Shared time.Duration // how long a node that applied another's changes counts as one of several
	Lanes  time.Duration // how often lanes without jobs are looked for
}

// NewManual returns a scheduler that does nothing until Step.
func NewManual(store Store, cfg Config, m Machine, p Pace) *Manual {
	s := newScheduler(store, cfg, m)
	s.pace = p.orConstants()
	return &Manual{Scheduler: s, loop: newLoop(s)}
}

func (p Pace) orConstants() Pace {
	if p.Serve == 0 {
		p.Serve = serveEvery
	}
	if p.Follow == 0 {
		p.Follow = followEvery
	}
	if p.Shared == 0 {
		p.Shared = sharedFor
	}
	if p.Lanes == 0 {
		p.Lanes = laneEvery
	}
	return p
}

// Wants reports whether the loop has something to do before its next step is due: enough calls wait, or a commit that
// was sent has ended.
func (m *Manual) Wants() bool {
	l := m.loop
	if ended(l.oldestDone()) {
		return true
	}
	return len(l.pending) < maxPending && ended(l.calls.Ready(l.minCalls()))
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Step does what Run does when it wakes up: it makes room if a commit has ended, else it answers the calls that wait.
// It returns after how long it is due again if the loop wants nothing before. After ErrBroken the node is over.
func (m *Manual) Step(ctx context.Context) (time.Duration, error) {
	if l := m.loop; len(l.pending) > 0 && ended(l.oldestDone()) {
		return l.settle(ctx)
	}
	return m.loop.step(ctx, m.calls.Take(batchLimit))
}

// Stop does what Run does at its end.
func (m *Manual) Stop(ctx context.Context) {
	_ = m.loop.awaitAll(ctx) // it answers the callers
	m.loop.refuseAll()
}

// Sample does what a node repeats every ten seconds beside its loop.
func (m *Manual) Sample(ctx context.Context) {
	m.sample(ctx)
	m.exchangeWorkers(ctx)
}

// ScanLanes does what a node repeats every Pace.Lanes beside its loop.
func (m *Manual) ScanLanes(ctx context.Context) {
	found, err := m.scanLanes(ctx, m.before)
	if err != nil {
		return // there is a next time
	}
	m.before = found.under
	select {
	case m.idleLanes <- found:
	default: // the loop is still at work on the last
	}
}
