package scheduler

import (
	"context"
	"fmt"
	"io"
	"slices"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// taken is a job that left the queue for a request, what it is, and its lease once it is made.
type taken struct {
	call *requestCall
	turn rules.Turn
	spec *rules.Spec
	fit  bool // its payload was checked
	held *rules.Held
}

// lease makes the leases of all jobs that were taken, and moves the jobs.
func (r *round) lease(ctx context.Context) error {
	if len(r.taken) == 0 {
		return nil
	}
	p := r.p
	for lacking := []*requestCall{nil}; len(lacking) > 0; {
		if err := r.readSpecs(ctx); err != nil {
			return err
		}
		if lacking = r.rejectUnfit(); len(lacking) > 0 {
			clear(r.denied) // the jobs that were rejected held locks, units and places under caps
		}
		for _, c := range lacking {
			r.fill(c)
		}
	}
	p.moves, p.stats.Waited = slices.Grow(p.moves, len(r.taken)), slices.Grow(p.stats.Waited, len(r.taken))
	for i := range r.taken {
		t := &r.taken[i]
		if t.spec == nil {
			return fmt.Errorf("job %s is queued and has no job row: %w", t.turn.Job, ErrMoved)
		}
		if err := p.l.checkLane(t); err != nil {
			return err
		}
		t.held = p.newLease(t)
		p.l.parked.wakeTwins(t.call)
		p.stats.Waited = append(p.stats.Waited, p.now.Sub(t.turn.QueuedAt))
		p.moves = append(p.moves, Move{From: rules.InQueue, To: rules.Leased, Turn: t.turn, Held: t.held})
		p.l.fold.Grant(t.held, rules.ExpiryCheck(t.held, p.now, p.serving))
		p.publish(t.turn.Job, t.held.Tenant, func() lessor.Event { return rules.Granted(t.held) })
	}
	p.stats.Granted += len(r.taken)
	if err := r.saveTrials(ctx); err != nil {
		return err
	}
	if err := r.clearNoWorker(ctx); err != nil {
		return err
	}
	return p.flush(ctx)
}

// readSpecs reads what the jobs are that were taken, once for lease and answer.
func (r *round) readSpecs(ctx context.Context) error {
	turns := make([]rules.Turn, len(r.taken))
	for i := range r.taken {
		turns[i] = r.taken[i].turn
	}
	specs, err := r.p.tx.SpecsAt(ctx, turns)
	for i := range specs {
		r.taken[i].spec = specs[i]
	}
	return err
}

// newLease makes the lease of a job that was taken.
func (p *pass) newLease(t *taken) *rules.Held {
	ask := t.call.ask
	ttl := ask.TTL
	if ttl == 0 {
		ttl = p.l.cfg.TTL
	}
	turn := rules.Fenced(t.turn, p.serving)
	h := rules.Grant(p.l.leaseID(turn.Seq), turn, t.spec, ask.Worker, ttl+p.l.cfg.Grace, p.now)
	h.RequestID, h.WorkspaceID = ask.RequestID, ask.WorkspaceID
	c := &t.call.caller
	h.Taker, h.Token, h.Bound = c.Actor, c.Token, c.Tenant != nil
	return h
}

// leaseID makes the id of a new lease, which cannot be guessed.
func (l *loop) leaseID(seq int64) lessor.LeaseID {
	var random [10]byte
	_, _ = io.ReadFull(l.machine.Secrets, random[:]) // it never fails
	return l.store.Seal().LeaseID(seq, random)
}

// maxMismatched bounds the remembered jobs whose row contradicts their lane.
const maxMismatched = 1000

// checkLane checks that the row of a job names the lane by which it was chosen. If not, the fold is wrong and is
// rebuilt; if that does not help, the rows contradict each other, and the job is skipped.
func (l *loop) checkLane(t *taken) error {
	if t.spec.LaneID == t.turn.Lane && t.spec.Lane == l.fold.Index.Lane(t.turn.Lane) {
		return nil
	}
	if l.mismatched == nil || len(l.mismatched) >= maxMismatched {
		l.mismatched = map[lessor.JobID]int{}
	}
	l.mismatched[t.turn.Job]++
	return fmt.Errorf("job %s is not of lane %d: %w", t.turn.Job, t.turn.Lane, fold.ErrStale)
}

// saveTrials stores which leases are trials, and blocks the definitions again of which no job was requested.
func (r *round) saveTrials(ctx context.Context) error {
	var changed []*rules.Circuit
	for i := range r.taken {
		lane := r.taken[i].spec.Lane
		if c := r.trialOf(lane); c != nil {
			c.Try(r.taken[i].held.ID)
			changed = append(changed, c)
			delete(r.trial, lane.Definition)
		}
	}
	for id := range r.trial {
		r.p.l.fold.Block(r.p.l.fold.Blocked(id))
	}
	return r.p.saveCircuits(ctx, changed)
}

// clearNoWorker clears the alerts about definitions for which a worker has come.
func (r *round) clearNoWorker(ctx context.Context) error {
	for i := range r.taken {
		lane := &r.taken[i].spec.Lane
		if lane.Definition == "" {
			continue
		}
		if err := r.p.clearAbout(ctx, alertOf{lessor.AlertNoWorker, lane.Tenant, lane.Definition}); err != nil {
			return err
		}
	}
	return nil
}
