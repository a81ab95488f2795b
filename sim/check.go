package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// ctx is that of all looks at the tables, which nobody ends.
var ctx = context.Background()

// served notes that a node could have committed a heartbeat now.
func (w *world) served() {
	b := w.books
	if w.now-b.servedAt > 1200*time.Millisecond {
		b.floor = w.now
	}
	b.servedAt = w.now
}

// committed looks at the tables after every commit.
func (w *world) committed(err error) {
	w.counts.Commits++
	if err == nil {
		w.served()
	}
	w.books.scan()
}

// scan holds the leases against what must hold at every commit.
func (b *books) scan() {
	b.look(func(v scheduler.View) error {
		now, serving := v.Now(), v.Serving()
		var fresh []*rules.Held
		all := make([]*rules.Held, 0, len(b.live)+4)
		err := v.EachLease(ctx, func(h *rules.Held) error {
			if old := b.live[h.ID]; old == nil {
				fresh = append(fresh, h)
			} else if h.BeatAt > old.BeatAt && rules.Over(old, h.BeatAt, serving) != "" {
				b.fail("P4", "a heartbeat at %v was accepted for lease %v, which was over: %+v", h.BeatAt, h.ID,
					old.Life)
			}
			b.live[h.ID] = h
			all = append(all, h)
			b.punctual(h, now, serving)
			return nil
		})
		if err == nil && len(all) < len(b.live) {
			err = b.vanished(v, all)
		}
		if err == nil && len(fresh) > 0 {
			err = b.bounds(v, all, fresh)
		}
		return err
	})
}

// punctual checks that a lease does not live on after its end (P6), as far as the server could have ended it: after the
// brake the server ends them at a rate.
func (b *books) punctual(h *rules.Held, now lessor.Instant, s rules.Serving) {
	late := now.Sub(rules.Effective(h, now, s))
	before := b.now - late - 3*time.Second
	serves := b.floor < before && b.now-b.servedAt < time.Second
	if late > 2*time.Second+b.pace.Serve && s.LapsedAt == 0 && serves && b.faults.troubledAt < before {
		b.fail("P6", "lease %v ended %v ago and is still held: %+v, serving %+v", h.ID, late, h.Life, s)
	}
}

// vanished checks the leases that ended in this commit (P5, P7).
func (b *books) vanished(v scheduler.View, all []*rules.Held) error {
	live := make(map[lessor.LeaseID]bool, len(all))
	for _, h := range all {
		live[h.ID] = true
	}
	for id := range b.live {
		if live[id] {
			continue
		}
		delete(b.live, id)
		a, _, err := v.AttemptOf(ctx, id)
		if err != nil {
			return err
		}
		l := b.leases[id]
		if a == nil || l == nil || l.lost || l.until == 0 || a.Reason != "lease_expired" {
			continue
		}
		slack := 20*time.Millisecond + l.ttl/2000
		switch {
		case b.now < l.until-slack:
			b.fail("P5", "lease %v expired %v early", id, l.until-b.now)
		case l.grantedAt < b.floor && b.now < b.floor+l.least-slack:
			b.fail("P7", "lease %v expired %v after service began again, its ttl is %v", id, b.now-b.floor, l.ttl)
		}
	}
	return nil
}

// usable is how many units may be leased now; if the host decides that, it is the most that may be.
func (b *books) usable(v scheduler.View) (int, error) {
	var s struct {
		Capacity rules.Overrides `json:"capacity"`
	}
	raw, err := v.Setting(ctx, "operator")
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &s)
	}
	c, total, busy := s.Capacity.InForce(v.Now()), b.config.TotalUnits, 0
	if c.TotalUnits != nil {
		total = c.TotalUnits.Value
	}
	if c.Busy != nil {
		busy = c.Busy.Value
	}
	return rules.Usable(total, b.config.ReserveUnits, busy, b.config.Percent), err
}

// bounds checks a commit that granted (P3, P11).
func (b *books) bounds(v scheduler.View, all, fresh []*rules.Held) error {
	usable, err := b.usable(v)
	if err != nil {
		return err
	}
	units, jobs := 0, map[lessor.JobID]bool{}
	locks := map[scheduler.Key]bool{}
	var ids []rules.LaneID
	for _, h := range all {
		units += h.Units
		if jobs[h.Turn.Job] {
			b.fail("P3", "job %v has two leases", h.Turn.Job)
		}
		jobs[h.Turn.Job] = true
		if k := (scheduler.Key{Tenant: h.Tenant, Key: h.LockKey}); h.LockKey != "" {
			if locks[k] {
				b.fail("P11", "lock %s is held twice", h.LockKey)
			}
			locks[k] = true
		}
		ids = append(ids, h.Turn.Lane)
	}
	if units > usable {
		b.fail("P11", "%d units are leased of %d", units, usable)
	}
	policies, err := v.Policies(ctx)
	if err != nil {
		return err
	}
	lanes, err := v.LanesByID(ctx, ids)
	for _, h := range fresh {
		if j := b.job(h.Turn.Job, h.Tenant); h.Turn.Fence <= j.fence {
			b.fail("P3", "job %v has fence %d after %d", j.id, h.Turn.Fence, j.fence)
		} else {
			j.fence = h.Turn.Fence
		}
		b.belongs(h, all, fresh, lanes)
		for _, p := range policies {
			b.obeys(h, all, lanes, p)
		}
		if !slices.ContainsFunc(policies, func(p rules.Policy) bool { return p.Tenant == h.Tenant && p.Class == "" }) {
			b.obeys(h, all, lanes, rules.Policy{Tenant: h.Tenant})
		}
	}
	return err
}

// belongs checks whose lane a new lease is of (P14), and that a unique job went to a worker without leases (P11).
func (b *books) belongs(h *rules.Held, all, fresh []*rules.Held, lanes map[rules.LaneID]rules.Lane) {
	lane, known := lanes[h.Turn.Lane]
	if !known || lane.Tenant != h.Tenant || lane.Units != h.Units || lane.LockKey != h.LockKey {
		b.fail("P14", "lease %v of tenant %v is of lane %d, which is %+v", h.ID, h.Tenant, h.Turn.Lane, lane)
	}
	for _, o := range all {
		before := !slices.Contains(fresh, o) || o != h && lanes[o.Turn.Lane].Unique
		if lane.Unique && before && o.Holder() == h.Holder() {
			b.fail("P11", "worker %s got a unique job and had a lease before", h.Worker)
		}
	}
}

// obeys checks a new lease against a policy (P11).
func (b *books) obeys(h *rules.Held, all []*rules.Held, lanes map[rules.LaneID]rules.Lane, p rules.Policy) {
	covers := func(o *rules.Held) bool {
		return o.Tenant == p.Tenant && (p.Class == "" || lanes[o.Turn.Lane].Class == p.Class)
	}
	if !covers(h) {
		return
	}
	if p.Class == "" && p.Cap == 0 && !p.Tenant.IsZero() {
		p.Cap = b.config.TenantCap
	}
	held := 0
	for _, o := range all {
		if covers(o) {
			held++
		}
	}
	if p.Paused || p.Cap != 0 && held > p.Cap {
		b.fail("P11", "lease %v is one of %d under %+v", h.ID, held, p)
	}
}
