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

// ctx is the context of all reads of the tables. It never ends.
var ctx = context.Background()

// longGap is longer than a gap in service that the ttl of a lease covers.
const longGap = 1200 * time.Millisecond

// served notes that a node could have committed a heartbeat now. The first time that shows nothing of the time before:
// a node that dies at once has not served. If no node outlived a gap, and the clock was set back by as much meanwhile,
// nothing shows that there was one.
func (w *world) served(n *node) {
	b, begins := w.known, n.servedAt == 0 || w.now-n.servedAt > longGap
	if begins {
		n.beganAt = w.now
	}
	n.servedAt = w.now
	switch {
	case w.now-b.servedAt > longGap:
		b.floor, b.gapAt = w.began(n), b.servedAt
		outlived := func(n *node) bool { return !n.dead && n.startedAt < b.gapAt }
		b.gapHidden = w.clock().Sub(b.servedClock).Abs() < longGap && !slices.ContainsFunc(w.nodes, outlived)
	case begins:
		return
	}
	b.servedAt, b.servedClock = w.now, w.clock()
}

// began is when the nodes that live began to serve after the gap that n has ended: others may have begun before n, and
// have shown nothing of the time since.
func (w *world) began(n *node) time.Duration {
	first := n.beganAt
	for _, o := range w.nodes {
		if !o.dead && o.pausedUntil <= w.now && o.beganAt > w.known.servedAt {
			first = min(first, o.beganAt)
		}
	}
	return first
}

// committed notes the answer that a node got to its commit.
func (w *world) committed(n *node, err error) {
	w.counts.Commits++
	if err == nil {
		w.served(n)
	}
}

// checkCommit checks the tables after a commit, before another node has changed them.
func (w *world) checkCommit(v scheduler.View) {
	current := w.current
	w.current = nil
	defer func() { w.current = current }()
	if err := w.known.scan(v); err != nil {
		w.fail("read", "%v", err)
	}
}

// scan checks what must hold for the leases at every commit.
func (b *knowledge) scan(v scheduler.View) error {
	now, serving := v.Now(), v.Serving()
	var fresh []*rules.Held
	all := make([]*rules.Held, 0, len(b.live)+4)
	err := v.EachLease(ctx, func(h *rules.Held) error {
		t := b.live[h.ID]
		if t == nil {
			fresh = append(fresh, h)
			t = b.begin(h, now)
		} else if h.BeatAt > t.BeatAt && rules.Over(t.Held, h.BeatAt, serving) != "" {
			b.fail("P4", "a heartbeat at %v was accepted for lease %v, which was over: %+v", h.BeatAt, h.ID, t.Life)
		}
		b.follow(t, h, now, serving)
		all = append(all, h)
		b.checkEndedInTime(t, now, serving)
		return nil
	})
	if err == nil && len(all) < len(b.live) {
		err = b.checkEnds(v, all)
	}
	if err == nil && len(fresh) > 0 {
		err = b.bounds(v, all, fresh)
	}
	return err
}

// operatorSettings are the settings of operators that were read last.
type operatorSettings struct {
	raw      []byte
	Capacity rules.Overrides `json:"capacity"`
}

// usable is how many units could be leased at an instant; if the host decides that, it is the most that could be.
func (b *knowledge) usable(v scheduler.View, at lessor.Instant) (int, error) {
	raw, err := v.Setting(ctx, "operator")
	if s := &b.settings; err == nil && string(raw) != string(s.raw) {
		if s.raw, s.Capacity = raw, (rules.Overrides{}); raw != nil {
			err = json.Unmarshal(raw, s)
		}
	}
	c, total, busy := b.settings.Capacity.InForce(at), b.config.TotalUnits, 0
	if c.TotalUnits != nil {
		total = c.TotalUnits.Value
	}
	if c.Busy != nil {
		busy = c.Busy.Value
	}
	return rules.Usable(total, b.config.ReserveUnits, busy, b.config.Percent), err
}

// bounds checks a commit that granted (P3, P11).
func (b *knowledge) bounds(v scheduler.View, all, fresh []*rules.Held) error {
	usable, err := b.usable(v, fresh[0].IssuedAt) // a setting may end between the grant and its commit
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
		b.checkMayBeGranted(h)
		b.checkOwner(h, all, fresh, lanes)
		for _, p := range b.governing(lanes[h.Turn.Lane], policies) {
			if held := p.count(all, lanes); p.Paused || p.Cap != 0 && held > p.Cap {
				b.fail("P11", "lease %v is one of %d under %+v", h.ID, held, p)
			}
		}
	}
	return err
}

// checkMayBeGranted checks that a job may be granted: with a higher fence than before (P3), not too often (P9), and
// not after its end (P4).
func (b *knowledge) checkMayBeGranted(h *rules.Held) {
	j := b.job(h.Turn.Job, h.Tenant)
	switch {
	case h.Turn.Fence <= j.fence:
		b.fail("P3", "job %v has fence %d after %d", j.id, h.Turn.Fence, j.fence)
	case h.Turn.Attempt > h.Turn.MaxAttempts:
		b.fail("P9", "job %v is granted for attempt %d of %d", j.id, h.Turn.Attempt, h.Turn.MaxAttempts)
	case j.final != "" && !j.retried:
		b.fail("P4", "job %v was %s at %v and is granted again", j.id, j.final, j.finalAt)
	}
	j.fence = max(j.fence, h.Turn.Fence)
	j.fences = append(j.fences, h.Turn.Fence)
}

// checkOwner checks whose lane a new lease is of (P14), and that a unique job went to a worker without leases (P11).
func (b *knowledge) checkOwner(h *rules.Held, all, fresh []*rules.Held, lanes map[rules.LaneID]rules.Lane) {
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

// policy is what was set for a tenant or a class, with the cap in force; 0 = none.
type policy rules.Policy

// governing returns the policies that a lane is under. Each tenant has one.
func (b *knowledge) governing(l rules.Lane, set []rules.Policy) (all []policy) {
	own := rules.Policy{Tenant: l.Tenant}
	for _, p := range set {
		switch {
		case p.Tenant != l.Tenant:
		case p.Class == "":
			own = p
		case p.Class == l.Class:
			all = append(all, policy(p))
		}
	}
	if own.Cap == 0 && !own.Tenant.IsZero() {
		own.Cap = b.config.TenantCap
	}
	return append(all, policy(own))
}

// count returns how many leases a policy covers.
func (p *policy) count(all []*rules.Held, lanes map[rules.LaneID]rules.Lane) (held int) {
	for _, h := range all {
		if h.Tenant == p.Tenant && (p.Class == "" || lanes[h.Turn.Lane].Class == p.Class) {
			held++
		}
	}
	return held
}
