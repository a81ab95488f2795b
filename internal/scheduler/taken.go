package scheduler

import (
	"io"

	"lessor"
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

// held makes the lease of a job that was taken.
func (p *pass) held(t *taken) *rules.Held {
	ask := t.call.ask
	ttl := ask.TTL
	if ttl == 0 {
		ttl = p.l.cfg.TTL
	}
	h := rules.Grant(p.l.leaseID(t.turn.Seq), rules.Fenced(t.turn, p.serving), t.spec, ask.Worker, ttl+p.l.cfg.Grace, p.now)
	h.RequestID, h.WorkspaceID = ask.RequestID, ask.WorkspaceID
	c := &t.call.caller
	h.Taker, h.Token, h.Bound = c.Actor, c.Token, c.Tenant != nil
	return h
}

// leaseID makes the id of a new lease, which nobody can guess.
func (l *loop) leaseID(seq int64) lessor.LeaseID {
	var random [10]byte
	_, _ = io.ReadFull(l.secrets, random[:]) // it never fails
	return l.store.Seal().LeaseID(seq, random)
}
