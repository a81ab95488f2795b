package scheduler

import (
	"context"

	"lessor"
)

// publish adds an entry to what the followers of this commit get, if there are any.
func (p *pass) publish(job lessor.JobID, tenant lessor.TenantID, event func() lessor.Event) {
	if p.following == unknown {
		p.following = no
		if p.l.stream.active(p.l.now()) || p.l.followedElsewhere() {
			p.following = yes
		}
	}
	if p.following == yes {
		p.events = append(p.events, lessor.StreamEvent{Event: event(), JobID: job, TenantID: tenant})
	}
}

// following reports whether any caller follows the records; a pass evaluates it once.
type following uint8

const (
	unknown following = iota
	no
	yes
)

// publish delivers the entries of a durable commit to the followers on this node. A follower that joined while the
// commit was on its way gets a gap: its entries were not made.
func (l *loop) publish(p *pass) {
	if p.following == no && l.stream.active(l.now()) {
		l.stream.markGap()
	}
	l.stream.publish(p.events)
}

// sendEvents gives the entries of this pass their trace ids, and publishes them to the nodes on which callers follow
// the records.
func (p *pass) sendEvents(ctx context.Context) error {
	if len(p.events) == 0 {
		return nil
	}
	ids := make([]lessor.JobID, len(p.events))
	for i := range p.events {
		ids[i] = p.events[i].JobID
	}
	specs, err := p.tx.Specs(ctx, ids)
	if err != nil {
		return err
	}
	for i := range p.events {
		if s := specs[p.events[i].JobID]; s != nil {
			p.events[i].TraceID = s.TraceID
		}
		if p.l.followedElsewhere() {
			if err := p.l.fold.PublishEvent(&p.events[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
