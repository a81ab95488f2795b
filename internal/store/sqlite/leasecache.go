package sqlite

import (
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// leaseCache holds every live lease, as the running transaction sees it, so that heartbeats and ends read nothing. What a
// transaction changes is noted, and taken back if it fails.
type leaseCache struct {
	held     map[lessor.LeaseID]*rules.Held
	requests map[scheduler.RequestRef][]*rules.Held // in the order of their grants
	undos    []leaseUndo
}

// leaseUndo is one lease before a change: added, removed (was), or changed (was, as in old).
type leaseUndo struct {
	added *rules.Held
	was   *rules.Held
	old   rules.Held
}

func newLeaseCache() *leaseCache {
	return &leaseCache{held: map[lessor.LeaseID]*rules.Held{}, requests: map[scheduler.RequestRef][]*rules.Held{}}
}

// put takes in a lease without noting it.
func (c *leaseCache) put(h *rules.Held) error {
	c.held[h.ID] = h
	if h.RequestID != "" {
		ref := scheduler.RequestRef{Worker: h.Worker, RequestID: h.RequestID}
		c.requests[ref] = append(c.requests[ref], h)
	}
	return nil
}

func (c *leaseCache) take(h *rules.Held) {
	delete(c.held, h.ID)
	if h.RequestID == "" {
		return
	}
	ref := scheduler.RequestRef{Worker: h.Worker, RequestID: h.RequestID}
	rest := slices.DeleteFunc(c.requests[ref], func(o *rules.Held) bool { return o == h })
	if len(rest) == 0 {
		delete(c.requests, ref)
		return
	}
	c.requests[ref] = rest
}

// add takes in a copy of h.
func (c *leaseCache) add(h *rules.Held) {
	kept := new(*h)
	_ = c.put(kept)
	c.undos = append(c.undos, leaseUndo{added: kept})
}

// remove forgets a lease and returns what it was; nil if there is none.
func (c *leaseCache) remove(id lessor.LeaseID) *rules.Held {
	h := c.held[id]
	if h == nil {
		return nil
	}
	c.take(h)
	c.undos = append(c.undos, leaseUndo{was: h, old: *h})
	return h
}

// change sets what may change in a live lease and returns how it is kept; nil if there is none.
func (c *leaseCache) change(h *rules.Held) *rules.Held {
	kept := c.held[h.ID]
	if kept == nil {
		return nil
	}
	c.undos = append(c.undos, leaseUndo{was: kept, old: *kept})
	kept.ExpiresAt, kept.FirstBeatAt, kept.BeatAt, kept.TTL = h.ExpiresAt, h.FirstBeatAt, h.BeatAt, h.TTL
	kept.CancelAt, kept.WatchUntil, kept.Reattached = h.CancelAt, h.WatchUntil, h.Reattached
	return kept
}

// keep ends a transaction that was committed.
func (c *leaseCache) keep() { c.undos = c.undos[:0] }

// undo ends a transaction that failed.
func (c *leaseCache) undo() {
	for _, u := range slices.Backward(c.undos) {
		if u.added != nil {
			c.take(u.added)
			continue
		}
		*u.was = u.old
		if c.held[u.was.ID] == nil {
			_ = c.put(u.was)
		}
	}
	c.keep()
}
