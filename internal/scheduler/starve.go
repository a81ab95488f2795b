package scheduler

import (
	"lessor"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

// starving is a job that has been first and did not fit.
type starving struct {
	lane   rules.LaneID
	seq    int64
	units  int
	typ    string
	tenant lessor.TenantID
	since  lessor.Instant
}

// starve notes that a job is first and does not fit. One such job is followed at a time, the first that was seen.
func (l *loop) starve(pick lanes.Pick, now lessor.Instant) {
	if l.reserve.since == 0 || !l.fold.Index.Eligible(l.reserve.lane, l.reserve.seq) {
		l.reserve = starving{
			lane: pick.Turn.Lane, seq: pick.Turn.Seq, units: pick.Lane.Units, typ: pick.Lane.Type, tenant: pick.Lane.Tenant, since: now,
		}
	}
}

// kept returns the job for which freed units are kept, nil if there is none: one that has starved for long enough, could
// be granted now but for its size, could fit, and is asked for: else it would stop all others for as long as no worker of its type
// comes.
func (l *loop) kept(now lessor.Instant, c lessor.Capacity) *starving {
	k := &l.reserve
	if k.since == 0 {
		return nil
	}
	if !l.fold.Index.Eligible(k.lane, k.seq) || k.units > c.UsableUnits {
		*k = starving{}
		return nil
	}
	if !rules.Starving(k.since, now) {
		return nil
	}
	if !l.workers.asks(k.typ, k.tenant, now) {
		*k = starving{}
		return nil
	}
	return k
}
