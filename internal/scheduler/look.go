package scheduler

import (
	"container/heap"
	"time"

	"lessor"
)

// look plans to look at a lease when it may be over. A lease that was beaten since is looked at in vain and planned
// anew: one look a ttl and lease, instead of an index that every heartbeat has to change.
func (f *fold) look(id lessor.LeaseID, at lessor.Instant) { heap.Push(&f.looks, lookAt{id, at}) }

// popLook returns the lease that is to be looked at first.
func (f *fold) popLook() lessor.LeaseID {
	id := f.looks[0].id
	heap.Pop(&f.looks)
	return id
}

// sweepDue reports whether leases are to be looked at.
func (f *fold) sweepDue(now lessor.Instant, sweep time.Duration) bool {
	if f.latest.Sub(now) > noStep {
		f.setBack(now)
	}
	f.latest = now
	at, ok := f.nextLook(sweep)
	return ok && at <= now
}

// noStep is how far the clock may seem to go back without having been set: its readings are of commits and of moments between them.
const noStep = time.Second

// setBack makes every look due by now that was planned on a clock which has since been set back: it would come a step late.
func (f *fold) setBack(now lessor.Instant) {
	for i := range f.looks {
		f.looks[i].at = min(f.looks[i].at, now) // the order stays
	}
	f.sweptAt, f.resetAt = min(f.sweptAt, now), now
}

// lookOf plans to look at a lease that another node granted. Right after the clock was set back the grant may be from before.
func (f *fold) lookOf(id lessor.LeaseID, at lessor.Instant) {
	if f.latest.Sub(f.resetAt).Abs() < resetFor {
		at = min(at, f.latest)
	}
	f.look(id, at)
}

// resetFor is how long after the clock was set back changes may come that other nodes made before: they are read within a second.
const resetFor = 5 * time.Second

// nextLook returns when the next lease may be over, but not sooner than a quarter of the sweep after the last look, so
// that leases which end one after the other share a commit.
func (f *fold) nextLook(sweep time.Duration) (lessor.Instant, bool) {
	if len(f.looks) == 0 {
		return 0, false
	}
	return max(f.looks[0].at, f.sweptAt.Add(sweep/4)), true
}

type lookAt struct {
	id lessor.LeaseID
	at lessor.Instant
}

// lookHeap orders leases by when they may be over.
type lookHeap []lookAt

func (h lookHeap) Len() int           { return len(h) }
func (h lookHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h lookHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lookHeap) Push(x any)        { *h = append(*h, x.(lookAt)) } //nolint:errcheck // only look pushes

// Pop removes the last element, as container/heap asks.
func (h *lookHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
