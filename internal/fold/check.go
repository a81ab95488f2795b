package fold

import (
	"container/heap"
	"slices"
	"time"

	"lessor"
)

// PlanCheck plans a check of a lease for when it may be over. If a heartbeat came in the meantime, the check finds the
// lease alive and plans the next one. This costs one check per lease and ttl, and saves an index that every heartbeat
// would have to change.
func (f *Fold) PlanCheck(id lessor.LeaseID, at lessor.Instant) { heap.Push(&f.checks, check{id, at}) }

// CheckNow makes the next commit check a lease that has lapsed.
func (f *Fold) CheckNow(id lessor.LeaseID, now lessor.Instant) {
	f.PlanCheck(id, now)
	f.restedAt = 0
}

// dropCheck forgets the check of a lease that has ended. Its place in the heap goes later, together with others.
func (f *Fold) dropCheck(id lessor.LeaseID) {
	f.unchecked[id] = struct{}{}
	if len(f.unchecked) < dropFrom || len(f.unchecked) < len(f.checks)/2 {
		return
	}
	f.checks = slices.DeleteFunc(f.checks, func(c check) bool {
		_, ended := f.unchecked[c.id]
		return ended
	})
	heap.Init(&f.checks)
	clear(f.unchecked)
}

// dropFrom is the number of ended leases from which it pays to go through all checks.
const dropFrom = 1024

// planFollowed plans the check of a lease that another node granted. Right after the clock was set back the grant may
// be from before.
func (f *Fold) planFollowed(id lessor.LeaseID, at lessor.Instant) {
	if f.latest.Sub(f.resetAt).Abs() < resetFor {
		at = min(at, f.latest)
	}
	f.PlanCheck(id, at)
}

// resetFor is how long after the clock was set back changes may arrive that other nodes made before: they are read
// within a second.
const resetFor = 5 * time.Second

// MaxJitter is how far two readings of the clock may go back although nobody set it: some are read in commits, others
// between them.
const MaxJitter = time.Second

// NoteClock notes a reading of the clock. If the clock was set back, every check that was planned before is due now: it
// would come late by as much as the clock was set back.
func (f *Fold) NoteClock(now lessor.Instant) {
	if f.latest.Sub(now) > MaxJitter {
		for i := range f.checks {
			f.checks[i].at = min(f.checks[i].at, now) // the order stays
		}
		f.sweptAt, f.restedAt, f.resetAt = min(f.sweptAt, now), min(f.restedAt, now), now
	}
	f.latest = now
}

// NextCheck returns when the next lease may be over, but not sooner than a quarter of the sweep after the last sweep
// that left nothing to check, so that leases which end one after the other share a commit.
func (f *Fold) NextCheck(sweep time.Duration) (lessor.Instant, bool) {
	if len(f.checks) == 0 {
		return 0, false
	}
	return max(f.checks[0].at, f.restedAt.Add(sweep/4)), true
}

// CheckDue reports whether the check of a lease is due.
func (f *Fold) CheckDue(now lessor.Instant, sweep time.Duration) bool {
	at, ok := f.NextCheck(sweep)
	return ok && at <= now
}

// TakeChecks begins a sweep: it returns up to limit leases whose check is due, and the time since the sweep before. The
// next sweep follows after a pause, or at once if more are due.
func (f *Fold) TakeChecks(now lessor.Instant, limit int) (ids []lessor.LeaseID, since time.Duration) {
	for len(f.checks) > 0 && f.checks[0].at <= now && len(ids) < limit {
		id := f.checks[0].id
		heap.Pop(&f.checks)
		if _, ended := f.unchecked[id]; ended {
			delete(f.unchecked, id)
			continue
		}
		ids = append(ids, id)
	}
	if len(f.checks) == 0 || f.checks[0].at > now {
		f.RestChecks(now)
	}
	since, f.sweptAt = now.Sub(f.sweptAt), now
	return ids, since
}

// RestChecks begins the pause before the next sweep.
func (f *Fold) RestChecks(now lessor.Instant) { f.restedAt = now }

type check struct {
	id lessor.LeaseID
	at lessor.Instant
}

// checkHeap orders leases by when they may be over.
type checkHeap []check

func (h checkHeap) Len() int           { return len(h) }
func (h checkHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h checkHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *checkHeap) Push(x any)        { *h = append(*h, x.(check)) } //nolint:errcheck // only PlanCheck pushes

// Pop removes the last element, as container/heap asks.
func (h *checkHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
