package scheduler

import (
	"time"

	"lessor"
	"lessor/internal/rules"
)

// beat decides the heartbeats of this pass.
func (p *pass) beat(calls []*beatCall) {
	for _, c := range calls {
		for i := range c.beats {
			p.beatOne(&c.caller, &c.beats[i])
		}
	}
}

func (p *pass) beatOne(c *Caller, b *beat) {
	h := p.leases[b.id]
	if h != nil && !c.sees(h.Tenant) {
		h = nil
	}
	first := h != nil && h.FirstBeatAt == 0
	var check lessor.Instant
	if h != nil && b.ask.TTL != 0 {
		check = rules.ExpiryCheck(h, p.now, p.serving)
	}
	by := c.hand(b.ask.Worker)
	switch b.err = p.appendEntries(h, by, b); {
	case b.err != nil:
	case b.ask.OutputOnly:
		b.err = rules.Touch(h, by, p.now, p.serving)
	default:
		b.err = rules.Beat(h, by, b.ask.TTL, p.now, p.serving)
	}
	if b.err != nil {
		if p.tooLate(h) {
			p.late.beats = append(p.late.beats, lateBeat{c, b})
		}
		return
	}
	p.print(h, b.ask.Output)
	if b.ask.OutputOnly {
		return
	}
	if rules.ExpiryCheck(h, p.now, p.serving) < check { // a shorter ttl ends the running time sooner after the floor
		p.planCheck(h)
	}
	p.changed[h.ID], b.job = h, h.Turn.Job
	p.stats.Beats++
	p.l.workers.beat(c, h, p.now)
	if first {
		p.publish(h.Turn.Job, h.Tenant, func() lessor.Event { return rules.Began(h) })
	}
	if b.ask.Report != nil {
		p.report(h, *b.ask.Report)
	}
	b.answer = lessor.HeartbeatAnswer{
		OK: true, ExpiresAt: rules.Effective(h, p.now, p.serving),
		HeartbeatAfterMS: pace(h.TTL), CancelRequested: h.CancelAt != 0,
	}
}

func (p *pass) report(h *rules.Held, r rules.Report) {
	r.Job, r.At, r.Highest = h.Turn.Job, p.now, r.Progress
	p.reports = append(p.reports, r)
}

func pace(ttl time.Duration) int64 { return rules.Pace(ttl).Milliseconds() }
