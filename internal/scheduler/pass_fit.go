package scheduler

import (
	"lessor"
	"lessor/internal/rules"
)

// maxChecks bounds the payloads that one pass checks against schemas, and maxRejected those among them that it ends: a
// check may take milliseconds, and all calls wait for the pass. The other jobs are granted in the next pass.
const (
	maxChecks   = 500
	maxRejected = 200
)

// rejectUnfit ends the jobs of this round whose payload breaks a schema that is newer than they are, and returns the
// requests that lack a job for it. Such a job is never granted.
func (r *round) rejectUnfit() (lacking []*requestCall) {
	book := r.p.l.handlers.Load()
	if len(*book) == 0 {
		return nil
	}
	fit := r.taken[:0]
	for _, t := range r.taken {
		if t.fit || t.spec == nil || !book.newer(t.spec) {
			fit = append(fit, t)
			continue
		}
		if r.checkedEnough() && t.spec.Lane.Definition == "" { // one of a definition may be the trial of its circuit
			r.p.l.fold.PutBack(t.turn)
			r.undo(&t)
			continue
		}
		r.checked++
		refusal := book.broken(t.spec.Lane.Type, t.spec.Payload, "")
		if t.fit = refusal == nil; t.fit {
			fit = append(fit, t)
			continue
		}
		r.rejected++
		r.p.reject(&t, refusal)
		r.undo(&t)
		lacking = append(lacking, t.call)
	}
	r.taken = fit
	if r.checkedEnough() {
		r.p.l.fold.WakeAll() // parked requests are tried again in the next pass
		return nil
	}
	return lacking
}

// checkedEnough reports whether this pass has checked as many payloads as it may.
func (r *round) checkedEnough() bool { return r.checked >= maxChecks || r.rejected >= maxRejected }

// undo takes back what was counted for a request whose job is rejected.
func (r *round) undo(t *taken) {
	if r.countTaken(t.call, -1); t.call.got == 0 {
		t.call.denial = rules.NoneLeft(r.p.now, r.p.now) // it may ask again at once
	}
	if t.call.ask.MaxUnits > 0 {
		t.call.left += t.spec.Lane.Units
	}
}

// reject ends a job that was taken from the queue and must not be granted.
func (p *pass) reject(t *taken, why *lessor.Error) {
	ch := rules.Reject(t.turn, why, p.now)
	p.moves = append(p.moves, Move{From: rules.InQueue, To: rules.Ended, Turn: t.turn, Done: ch.Next.Done})
	p.notes = append(p.notes, ch.Notes...)
	p.l.fold.Reject(t.turn)
	p.stats.Ended = append(p.stats.Ended, EndedAttempt{Outcome: rules.OutcomeFailed})
	for _, n := range ch.Notes {
		p.publish(n.Job, t.spec.Lane.Tenant, func() lessor.Event { return n.Event(t.turn.Steps+1, n.From, "") })
	}
}
