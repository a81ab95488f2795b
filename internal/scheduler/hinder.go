package scheduler

import (
	"lessor"
	"lessor/internal/rules"
)

// hindrances are the definitions whose jobs may not run as others do.
type hindrances struct {
	all  map[string]Hindrance
	open map[string]struct{} // of these, with an open circuit: a trial may be due
}

// hinder brings the order of turns along with what holds a definition's jobs back now.
func (f *fold) hinder(h Hindrance) {
	blocked := h.Held || !h.Circuit.Closed()
	f.index.SetDefinition(h.Tenant, h.Definition, blocked)
	delete(f.hindered.open, h.Definition)
	delete(f.hindered.all, h.Definition)
	if h.Held || !h.Circuit.Idle() {
		f.hindered.all[h.Definition] = h
	}
	if h.Circuit.State == lessor.CircuitOpen {
		f.hindered.open[h.Definition] = struct{}{}
		f.triesAt(h.Circuit.RetryAt, 0)
	}
	f.woke = f.woke || !blocked
}

// unhinder lets the jobs of a definition go, as those of a deleted one that run on.
func (f *fold) unhinder(definition string) {
	if h, known := f.hindered.all[definition]; known {
		f.hinder(Hindrance{Definition: definition, Tenant: h.Tenant})
	}
}

// hinderAll replaces all hindrances.
func (f *fold) hinderAll(all []Hindrance) {
	was := f.hindered.all
	f.hindered = hindrances{all: map[string]Hindrance{}, open: map[string]struct{}{}}
	for _, h := range all {
		if was[h.Definition].Tenant == h.Tenant {
			delete(was, h.Definition)
		}
	}
	for _, h := range was { // first, since an id may have passed to another tenant
		f.hinder(Hindrance{Definition: h.Definition, Tenant: h.Tenant})
	}
	for _, h := range all {
		f.hinder(h)
	}
}

// held notes whether a definition is paused or disabled.
func (f *fold) held(d *rules.Definition) {
	h := f.hindered.all[d.ID]
	h.Definition, h.Tenant, h.Held = d.ID, d.Tenant, !d.Ticking()
	f.hinder(h)
}

// broken notes the state of a circuit, and reports whether it differs for other nodes.
func (f *fold) broken(c *rules.Circuit) bool {
	h := f.hindered.all[c.Definition]
	differs := h.Circuit.State != c.State || h.Circuit.RetryAt != c.RetryAt
	h.Definition, h.Tenant, h.Circuit = c.Definition, c.Tenant, *c
	f.hinder(h)
	return differs
}

// tries returns the definitions of which one queued job may be tried now.
func (f *fold) tries(now lessor.Instant) (ids []string) {
	for id := range f.hindered.open {
		h := f.hindered.all[id]
		if !h.Held && h.Circuit.Ready(now) && f.index.Waiting(h.Tenant, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// trialDue reports whether the time of an open circuit has come since the last asking; those who wait for work are then asked again.
func (f *fold) trialDue(now lessor.Instant) bool {
	if f.trialAt == 0 || f.trialAt > now {
		return false
	}
	f.trialAt, f.woke = 0, true
	for id := range f.hindered.open {
		f.triesAt(f.hindered.all[id].Circuit.RetryAt, now)
	}
	return true
}

// triesAt notes that a circuit may be tried at an instant, if that is not past.
func (f *fold) triesAt(at, now lessor.Instant) {
	if at > now && (f.trialAt == 0 || at < f.trialAt) {
		f.trialAt = at
	}
}

// ticksAt notes that a definition is due at an instant; 0 = never.
func (f *fold) ticksAt(due lessor.Instant) {
	if due != 0 && (f.tickAt == 0 || due < f.tickAt) {
		f.tickAt = due
	}
}

// resettle tells the other nodes that what operators and failures set has changed.
func (p *pass) resettle() {
	p.l.fold.woke = true
	if d := p.l.fold.delta; d != nil {
		d.settings()
	}
}
