package sqlite

import (
	"fmt"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// leaseCache holds every live lease, as the running transaction sees it, so that heartbeats and ends read nothing. What a
// transaction changes is noted, and taken back if it fails.
type leaseCache struct {
	held     map[lessor.LeaseID]*kept
	requests map[scheduler.RequestRef][]*kept // in the order of their grants
	last     int64                            // the number of the newest lease; those of a failed transaction are not given again
	undos    []leaseUndo
	index    *leaseIndex
}

// kept is a live lease, its number, and whether it has a row in beat.
type kept struct {
	rules.Held
	n      int64
	beaten bool
}

// leaseUndo is what a transaction did to one lease.
type leaseUndo struct {
	lease *kept
	did   leaseChange
	old   beaten // of a lease that was changed
}

type leaseChange uint8

const (
	leaseAdded leaseChange = iota
	leaseRemoved
	leaseChanged
)

// beaten is what may change in a live lease.
type beaten struct {
	expiresAt, firstBeatAt, beatAt, cancelAt, watchUntil lessor.Instant
	ttl                                                  time.Duration
	reattached, row                                      bool
}

func (h *kept) changeable() beaten {
	return beaten{h.ExpiresAt, h.FirstBeatAt, h.BeatAt, h.CancelAt, h.WatchUntil, h.TTL, h.Reattached, h.beaten}
}

func (h *kept) change(b beaten) {
	h.ExpiresAt, h.FirstBeatAt, h.BeatAt, h.CancelAt, h.WatchUntil = b.expiresAt, b.firstBeatAt, b.beatAt, b.cancelAt, b.watchUntil
	h.TTL, h.Reattached, h.beaten = b.ttl, b.reattached, b.row
}

func newLeaseCache() *leaseCache {
	return &leaseCache{held: map[lessor.LeaseID]*kept{}, requests: map[scheduler.RequestRef][]*kept{}, index: newLeaseIndex()}
}

// load takes in a lease that was stored before.
func (c *leaseCache) load(h *kept) error {
	if !c.index.add(h.Turn.Seq, h.n) {
		return fmt.Errorf("job %s has two leases", h.Turn.Job)
	}
	c.put(h)
	return nil
}

func (c *leaseCache) put(h *kept) {
	c.held[h.ID] = h
	c.last = max(c.last, h.n)
	if h.RequestID != "" {
		ref := scheduler.RequestRef{Holder: h.Holder(), RequestID: h.RequestID}
		c.requests[ref] = append(c.requests[ref], h)
	}
}

func (c *leaseCache) take(h *kept) {
	delete(c.held, h.ID)
	if h.RequestID == "" {
		return
	}
	ref := scheduler.RequestRef{Holder: h.Holder(), RequestID: h.RequestID}
	rest := slices.DeleteFunc(c.requests[ref], func(o *kept) bool { return o == h })
	if len(rest) == 0 {
		delete(c.requests, ref)
		return
	}
	c.requests[ref] = rest
}

// add takes in a copy of h under the next number; nil if there is a lease with its id, or of its job.
func (c *leaseCache) add(h *rules.Held) *kept {
	if c.held[h.ID] != nil || !c.index.add(h.Turn.Seq, c.last+1) {
		return nil
	}
	added := &kept{Held: *h, n: c.last + 1, beaten: !asGranted(h)}
	c.put(added)
	c.undos = append(c.undos, leaseUndo{lease: added, did: leaseAdded})
	return added
}

// remove forgets a lease and returns what it was; nil if there is none.
func (c *leaseCache) remove(id lessor.LeaseID) *kept {
	h := c.held[id]
	if h == nil {
		return nil
	}
	c.take(h)
	c.index.end(h.Turn.Seq, h.n)
	c.undos = append(c.undos, leaseUndo{lease: h, did: leaseRemoved})
	return h
}

// change sets what may change in a live lease and returns how it is kept; nil if there is none.
func (c *leaseCache) change(h *rules.Held) *kept {
	now := c.held[h.ID]
	if now == nil {
		return nil
	}
	c.undos = append(c.undos, leaseUndo{lease: now, did: leaseChanged, old: now.changeable()})
	now.change(beaten{h.ExpiresAt, h.FirstBeatAt, h.BeatAt, h.CancelAt, h.WatchUntil, h.TTL, h.Reattached, true})
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
			u.lease.change(u.old)
		}
	}
	c.undos = c.undos[:0]
}
