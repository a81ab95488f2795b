package scheduler

import (
	"lessor"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

// starvingJob is a job that was first and did not fit.
type starvingJob struct {
	lane    rules.LaneID
	of      rules.Lane
	seq     int64
	since   lessor.Instant // 0 = there is none
	askedAt lessor.Instant // when a request that may get it was last tried
}

// starve notes that a job is first and does not fit. One such job is remembered at a time: the first that was seen on
// any node.
func (l *loop) starve(pick *lanes.Pick, now lessor.Instant) {
	if !l.starves() {
		l.starving = starvingJob{
			lane: pick.Turn.Lane, of: pick.Lane, seq: pick.Turn.Seq, since: now, askedAt: now,
		}
	}
}

// starves reports whether there is a starving job that could be granted now but for its size.
func (l *loop) starves() bool {
	return l.starving.since != 0 && l.fold.Index.Eligible(l.starving.lane, l.starving.seq)
}

// reservedFor returns the job for which freed units are reserved, nil if there is none: one that has starved for long
// enough and could fit. It must be asked for, by a worker that takes jobs of its size, else it would stop all others
// until such a worker comes.
func (l *loop) reservedFor(now lessor.Instant, c lessor.Capacity) *lanes.Reserved {
	s := &l.starving
	if !l.starves() || s.of.Units > c.UsableUnits || !rules.Starving(s.since, now) || !lately(s.askedAt, now) {
		return nil
	}
	return &lanes.Reserved{Lane: s.lane, Seq: s.seq, Units: s.of.Units}
}

// forgetStarving forgets a starving job for which nothing will be reserved: if it is first again, its time begins anew.
func (l *loop) forgetStarving(now lessor.Instant, c lessor.Capacity) {
	s := &l.starving
	if !l.starves() || s.of.Units > c.UsableUnits || rules.Starving(s.since, now) {
		*s = starvingJob{}
	}
}

// starvingNote describes the starving job of a node to other nodes.
type starvingNote struct {
	Lane    rules.LaneID   `json:"lane"`
	Seq     int64          `json:"seq"`
	Since   lessor.Instant `json:"since"` // 0 = there is none
	AskedAt lessor.Instant `json:"asked_at"`
}

// shareStarving gives the starving job to the exchange with other nodes, and takes theirs from it. All nodes must keep
// units for the same job, the one that has starved longest: what one keeps, the others would grant.
func (l *loop) shareStarving(now lessor.Instant) {
	if !l.store.Shared() {
		return
	}
	for _, n := range l.workers.starvingElsewhere() {
		n.Since, n.AskedAt = min(n.Since, now), min(n.AskedAt, now) // the clock may have been set back
		l.adoptStarving(&n, now)
	}
	var own starvingNote
	if s := &l.starving; l.starves() {
		own = starvingNote{Lane: s.lane, Seq: s.seq, Since: s.since, AskedAt: s.askedAt}
	}
	l.workers.noteStarving(own)
}

// adoptStarving takes over the starving job of another node, unless this node's own is older.
func (l *loop) adoptStarving(n *starvingNote, now lessor.Instant) {
	s := &l.starving
	switch {
	case n.Since <= 0 || !lately(n.AskedAt, now) || !l.fold.Index.Eligible(n.Lane, n.Seq):
	case s.since != 0 && s.seq == n.Seq:
		s.since, s.askedAt = min(s.since, n.Since), max(s.askedAt, n.AskedAt)
	case !l.starves() || !lately(s.askedAt, now) || n.Since < s.since || n.Since == s.since && n.Seq < s.seq:
		*s = starvingJob{
			lane: n.Lane, of: l.fold.Index.Lane(n.Lane), seq: n.Seq, since: n.Since, askedAt: n.AskedAt,
		}
	}
}
