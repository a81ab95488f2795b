package memory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// lease returns the job of a live lease; nil if there is none. The id of a lease contains the seq of its job.
func (v *view) lease(id lessor.LeaseID) *job {
	if j, ok := v.state.leases.get(key{n: v.db.seal.Seq(id)}); ok && j.Held.ID == id {
		return j
	}
	return nil
}

// Peek implements scheduler.Tx.
func (t *tx) Peek(_ context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error) {
	leases := make(map[lessor.LeaseID]*rules.Held, len(ids))
	t.read("peek at leases")
	for _, id := range ids {
		if j := t.lease(id); j != nil {
			leases[id] = new(*j.Held)
		}
	}
	return leases, t.err
}

// Leases implements scheduler.Tx. All nodes lock in the order of seqs.
func (t *tx) Leases(_ context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error) {
	leases := make(map[lessor.LeaseID]*rules.Held, len(ids))
	err := t.do("lock leases", func() error {
		sorted := slices.Clone(ids)
		slices.SortFunc(sorted, func(a, b lessor.LeaseID) int {
			return cmp.Compare(t.db.seal.Seq(a), t.db.seal.Seq(b))
		})
		for _, id := range sorted {
			if j := t.lease(id); j != nil {
				if err := t.acquire(j.lock()); err != nil {
					return err
				}
			}
			if j := t.lease(id); j != nil { // as it is after the waiting
				leases[id] = new(*j.Held)
			}
		}
		t.readClock()
		return nil
	})
	return leases, err
}

// Requested implements scheduler.Tx, in the order of the grants and, within one instant, of the jobs' seqs.
func (t *tx) Requested(_ context.Context, refs []scheduler.RequestRef) (map[scheduler.RequestRef][]*rules.Held, error) {
	found := make(map[scheduler.RequestRef][]*rules.Held)
	s := t.read("read requested leases")
	for _, ref := range refs {
		if _, twice := found[ref]; twice {
			continue
		}
		k := requestKey(ref)
		for _, seq := range s.requested.under(k.text, k.id) {
			j, _ := s.leases.get(key{n: seq})
			found[ref] = append(found[ref], new(*j.Held))
		}
	}
	return found, t.err
}

// SaveLeases implements scheduler.Tx.
func (t *tx) SaveLeases(_ context.Context, held []*rules.Held) error {
	return t.do("save leases", func() error {
		sorted := slices.SortedFunc(slices.Values(held), func(a, b *rules.Held) int {
			return cmp.Compare(a.Turn.Seq, b.Turn.Seq)
		})
		for _, h := range sorted {
			if err := t.acquire(lock{"job", key{id: h.Turn.Job.UUID}}); err != nil {
				return err
			}
			j, ok := t.state.leases.get(key{n: h.Turn.Seq})
			if !ok || j.Turn.Fence != h.Turn.Fence {
				return fmt.Errorf("%w: lease %s", scheduler.ErrMoved, h.ID)
			}
			life := h.Life
			t.change(j, func(j *job) {
				j.Held = new(*j.Held)
				j.Held.Life = life
			})
		}
		return nil
	})
}

// EachLease implements scheduler.View.
func (v *view) EachLease(_ context.Context, fn func(*rules.Held) error) error {
	s := v.read("read leases")
	for _, j := range s.leases.all() {
		if err := fn(new(*j.Held)); err != nil {
			return err
		}
	}
	return v.err
}

// LeaseList implements scheduler.View.
func (v *view) LeaseList(_ context.Context, q scheduler.LeaseQuery) ([]scheduler.ListedLease, error) {
	return v.listLeases("list leases", q.After, q.Limit, func(h *rules.Held) bool {
		return (q.Worker == "" || h.Worker == q.Worker) && is(q.Tenant, h.Tenant) && is(q.Token, h.Token)
	})
}

// LockList implements scheduler.View.
func (v *view) LockList(_ context.Context, q scheduler.LockQuery) ([]scheduler.ListedLease, error) {
	return v.listLeases("list locks", q.After, q.Limit, func(h *rules.Held) bool {
		return h.LockKey != "" && is(q.Tenant, h.Tenant)
	})
}

// listLeases lists leases by when they were granted, and those of one instant by the seqs of their jobs.
func (v *view) listLeases(
	verb string, after *scheduler.LeasePlace, limit int, matches func(*rules.Held) bool,
) (list []scheduler.ListedLease, err error) {
	s := v.read(verb)
	if after == nil {
		after = &scheduler.LeasePlace{A: math.MaxInt64}
	}
	for _, j := range s.leases.all() {
		at := scheduler.LeasePlace{A: int64(j.Held.IssuedAt), B: j.Turn.Seq}
		if matches(j.Held) && (at.A < after.A || at.A == after.A && at.B < after.B) {
			list = append(list, scheduler.ListedLease{Held: new(*j.Held), Type: j.Spec.Lane.Type, Place: at})
		}
	}
	slices.SortFunc(list, func(a, b scheduler.ListedLease) int {
		return cmp.Or(cmp.Compare(b.Place.A, a.Place.A), cmp.Compare(b.Place.B, a.Place.B))
	})
	return list[:min(len(list), max(limit, 0))], v.err
}

// WorkspaceLeases implements scheduler.View.
func (v *view) WorkspaceLeases(_ context.Context, workspace string) (held []*rules.Held, err error) {
	s := v.read("read leases of a workspace")
	for _, seq := range s.workspaces.under(workspace, lessor.UUID{}) {
		j, _ := s.leases.get(key{n: seq})
		held = append(held, new(*j.Held))
	}
	return held, v.err
}

// LeaseEnds implements scheduler.View.
func (v *view) LeaseEnds(_ context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]scheduler.LeaseEnd, error) {
	ends := make(map[lessor.LeaseID]scheduler.LeaseEnd)
	s := v.read("read ends of leases")
	for _, id := range ids {
		if a, ok := s.ends.get(key{id: id.UUID}); ok {
			ends[id] = scheduler.LeaseEnd{
				Worker: a.Worker, Tenant: s.tenantOf(a), Outcome: a.Outcome, Said: a.Said, Reason: a.Reason,
			}
		}
	}
	return ends, v.err
}

// AttemptOf implements scheduler.View.
func (v *view) AttemptOf(_ context.Context, id lessor.LeaseID) (*rules.Attempt, lessor.TenantID, error) {
	s := v.read("read an attempt")
	a, ok := s.ends.get(key{id: id.UUID})
	if !ok {
		return nil, lessor.TenantID{}, v.err
	}
	return new(*a), s.tenantOf(a), v.err
}

func (s *tables) tenantOf(a *rules.Attempt) lessor.TenantID {
	j, _ := s.jobs.get(key{id: a.Turn.Job.UUID}) // an attempt goes with its job
	return j.Spec.Lane.Tenant
}
