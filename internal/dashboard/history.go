package dashboard

import (
	"context"
	"sync"
	"time"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// The charts show an hour in slots of 30 s. Each node counts for itself since its start, so that a chart needs no
// query.
const (
	slotTime = 30 * time.Second
	slots    = 120
)

// slot counts the events of 30 s.
type slot struct {
	n                               int64 // its number since 1970
	submitted, completed, otherwise int   // otherwise counts attempts that ended without success
	depth                           int   // jobs that were queued and due in the last sample
	sampled                         bool  // this node ran and could read the store
}

// at returns the beginning of a slot.
func (s slot) at() time.Time { return time.Unix(0, s.n*int64(slotTime)).UTC() }

// history is a ring of the last hour.
type history struct {
	mu   sync.Mutex
	ring [slots]slot
}

// at returns the slot of a time. It clears a slot of an older hour.
func (h *history) at(now time.Time) *slot {
	n := now.UnixNano() / int64(slotTime)
	s := &h.ring[n%slots]
	if s.n != n {
		*s = slot{n: n}
	}
	return s
}

// count adds the results of one commit.
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

// last returns the hour before now, oldest first, with empty slots where there is no data.
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

// sample stores the depth of the queue three times per slot.
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
