package executor

import (
	"encoding/json"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

// news is what the command reported, and which part of it the server does not know yet.
type news struct {
	status  sentinel.Status
	movedAt time.Time
	moved   bool // since the last heartbeat that was accepted
	overdue bool // a heartbeat is due as soon as the command moves

	progress       *float64
	message        *string
	checkpoint     json.RawMessage
	lastCheckpoint []byte // as it was last read
}

// begin counts the start as the first sign of progress.
func (n *news) begin(at time.Time) { n.status, n.movedAt, n.moved = sentinel.Running, at, true }

// moved records a sign of progress.
func (s *shim) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news.movedAt, s.news.moved = time.Now(), true
	if s.news.overdue {
		s.news.overdue = false
		notify(s.wake)
	}
}

// status returns what the sentinel shows about the command.
func (s *shim) status() (status sentinel.Status, movedAt time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news.status, s.news.movedAt
}

// takeHeartbeat returns the next heartbeat with all news, and whether one is due: always, or only after progress.
func (s *shim) takeHeartbeat() (b lessor.Heartbeat, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order.Task.ExtendOn != lessor.ExtendOnLife && !s.news.moved {
		s.news.overdue = true
		return lessor.Heartbeat{}, false
	}
	b = lessor.Heartbeat{
		WorkerID: &s.order.Grant.Lease.WorkerID,
		Progress: s.news.progress, Message: s.news.message, Checkpoint: s.news.checkpoint,
	}
	s.news.moved, s.news.progress, s.news.message, s.news.checkpoint = false, nil, nil, nil
	return b, true
}

// keep puts back what a heartbeat could not deliver, unless there is something newer.
func (s *shim) keep(b lessor.Heartbeat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news.moved = true
	if s.news.progress == nil {
		s.news.progress, s.news.message = b.Progress, b.Message
	}
	if s.news.checkpoint == nil {
		s.news.checkpoint = b.Checkpoint
	}
}

// lastReport returns what the report of the end must carry, because no heartbeat has delivered it.
func (s *shim) lastReport() lessor.Heartbeat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return lessor.Heartbeat{Progress: s.news.progress, Message: s.news.message, Checkpoint: s.news.checkpoint}
}

// notify wakes the goroutine that waits on c, now or at its next wait.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
