package scheduler

import (
	"lessor"
	"lessor/internal/rules"
)

// late are the calls of a pass on leases that have lapsed and were not ended yet. They are answered when it is decided whether the brake
// is pulled, which would give the leases another ttl: a worker that is told that its lease is over stops, so the lease must
// not live on.
type late struct {
	leases map[lessor.LeaseID]struct{}
	beats  []lateBeat
	ends   []lateEnd
}

type lateBeat struct {
	caller Caller
	beat   *beat
}

type lateEnd struct {
	caller Caller
	end    *ending
	specs  map[lessor.JobID]*rules.Spec
}

// tooLate reports whether h is over by itself, and notes that a call named it.
func (p *pass) tooLate(h *rules.Held) bool {
	if h == nil || rules.Over(h, p.now, p.serving) == "" {
		return false
	}
	if p.late.leases == nil {
		p.late.leases = map[lessor.LeaseID]struct{}{}
	}
	p.late.leases[h.ID] = struct{}{}
	return true
}

// answerLate answers the late calls under the floor that was decided.
func (p *pass) answerLate() {
	beats, ends := p.late.beats, p.late.ends
	for _, b := range beats {
		p.beatOne(b.caller, b.beat)
	}
	for _, e := range ends {
		p.endAs(e.caller, e.end, e.specs, nil)
	}
}
