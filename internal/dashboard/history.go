package dashboard

import (
	"context"
	"sync"
	"time"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// The charts show an hour in slots of 30 s. What they show is this node's own count since its start: no query, however much there is.
const (
	slotTime = 30 * time.Second
	slots    = 120
)

// slot is what happened in one slot of time.
type slot struct {
	n                               int64 // which one, in slots since 1970
	submitted, completed, otherwise int   // otherwise = attempts that ended without success
	depth                           int   // jobs that were queued and due, as last seen
	sampled                         bool
}

// history is a ring of the last hour.
type history struct {
	mu   sync.Mutex
	ring [slots]slot
}

// at returns the slot of a time, emptied if it was an older one's.
func (h *history) at(now time.Time) *slot {
	n := now.UnixNano() / int64(slotTime)
	s := &h.ring[n%slots]
	if s.n != n {
		*s = slot{n: n}
	}
	return s
}

// count adds what one commit did.
func (h *history) count(st scheduler.Stats) {
	if st.Submitted == 0 && len(st.Ended) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.at(time.Now())
	s.submitted += st.Submitted
	for _, e := range st.Ended {
		if e.Outcome == rules.OutcomeCompleted {
			s.completed++
		} else {
			s.otherwise++
		}
	}
}

func (h *history) depth(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.at(time.Now())
	s.depth, s.sampled = n, true
}

// last returns the hour before now, oldest first, with empty slots where nothing was seen.
func (h *history) last(now time.Time) []slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest := now.UnixNano() / int64(slotTime)
	list := make([]slot, slots)
	for i := range list {
		n := newest - slots + 1 + int64(i)
		list[i] = slot{n: n}
		if s := h.ring[n%slots]; s.n == n {
			list[i] = s
		}
	}
	return list
}

// sample notes the depth of the queue now and then.
func (d *Dashboard) sample(ctx context.Context) {
	tick := time.NewTicker(slotTime / 3)
	defer tick.Stop()
	for {
		if st, err := d.scheduler.Status(ctx, scheduler.Caller{Actor: rules.ActorDashboard}); err == nil {
			q := st.QueueDepth
			d.history.depth(q.High + q.Normal + q.Low + q.Background)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
