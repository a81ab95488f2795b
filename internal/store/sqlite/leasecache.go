package sqlite

import (
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// leaseCache holds every live lease, as the running transaction sees it, so that heartbeats and ends read nothing. The
// changes of a transaction are recorded, and undone if it fails.
type leaseCache struct {
	live     map[lessor.LeaseID]*liveLease
	requests map[scheduler.RequestRef][]*liveLease // in the order of the grants
	// last is the number of the newest lease. Those of a failed transaction are not given again.
	last  int64
	undos []leaseUndo
	index *leaseIndex
}

// liveLease is a lease, its number, and whether it has a row in beat.
type liveLease struct {
	rules.Held
	n       int64
	hasBeat bool
}

// leaseUndo is what a transaction did to one lease.
type leaseUndo struct {
	lease *liveLease
	did   leaseChange
	old   rules.Life // of a lease that was changed, with
	beat  bool       // whether it had a row in beat
}

type leaseChange uint8

const (
	leaseAdded leaseChange = iota
	leaseRemoved
	leaseChanged
)

func newLeaseCache() *leaseCache {
	return &leaseCache{
		live:     map[lessor.LeaseID]*liveLease{},
		requests: map[scheduler.RequestRef][]*liveLease{},
		index:    newLeaseIndex(),
	}
}

// load adds a lease that was read from the tables.
func (c *leaseCache) load(h *liveLease) error {
	if !c.index.add(h.Turn.Seq, h.n) {
		return fmt.Errorf("job %s has two leases", h.Turn.Job)
	}
	c.put(h)
	return nil
}

func (c *leaseCache) put(h *liveLease) {
	c.live[h.ID] = h
	c.last = max(c.last, h.n)
	if h.RequestID != "" {
		ref := scheduler.RequestRef{Holder: h.Holder(), RequestID: h.RequestID}
		c.requests[ref] = append(c.requests[ref], h)
	}
}

func (c *leaseCache) take(h *liveLease) {
	delete(c.live, h.ID)
	if h.RequestID == "" {
		return
	}
	ref := scheduler.RequestRef{Holder: h.Holder(), RequestID: h.RequestID}
	rest := slices.DeleteFunc(c.requests[ref], func(o *liveLease) bool { return o == h })
	if len(rest) == 0 {
		delete(c.requests, ref)
		return
	}
	c.requests[ref] = rest
}

// add adds a copy of h under the next number. It returns nil if there is a lease with its id, or of its job.
func (c *leaseCache) add(h *rules.Held) *liveLease {
	if c.live[h.ID] != nil || !c.index.add(h.Turn.Seq, c.last+1) {
		return nil
	}
	added := &liveLease{Held: *h, n: c.last + 1, hasBeat: !asGranted(h)}
	c.put(added)
	c.undos = append(c.undos, leaseUndo{lease: added, did: leaseAdded})
	return added
}

// remove removes a lease and returns it; nil if there is none.
func (c *leaseCache) remove(id lessor.LeaseID) *liveLease {
	h := c.live[id]
	if h == nil {
		return nil
	}
	c.take(h)
	c.index.end(h.Turn.Seq, h.n)
	c.undos = append(c.undos, leaseUndo{lease: h, did: leaseRemoved})
	return h
}

// change sets what may change in a live lease, and returns the lease; nil if there is none.
func (c *leaseCache) change(h *rules.Held) *liveLease {
	now := c.live[h.ID]
	if now == nil {
		return nil
	}
	c.undos = append(c.undos, leaseUndo{lease: now, did: leaseChanged, old: now.Life, beat: now.hasBeat})
	now.Life, now.hasBeat = h.Life, true
	return now
}

// keep ends a transaction that was committed.
func (c *leaseCache) keep() {
	c.undos = c.undos[:0]
	c.index.keep()
}

// undo ends a transaction that failed.
func (c *leaseCache) undo() {
	for _, u := range slices.Backward(c.undos) {
		switch u.did {
		case leaseAdded:
			c.take(u.lease)
			c.index.unadd(u.lease.Turn.Seq)
		case leaseRemoved:
			c.put(u.lease)
			c.index.unend()
		case leaseChanged:
			u.lease.Life, u.lease.hasBeat = u.old, u.beat
		}
	}
	c.undos = c.undos[:0]
}
