package executor

import (
	"encoding/json"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

// reported is what the command reported, and which part of it the server does not know yet.
type reported struct {
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
func (r *reported) begin(at time.Time) { r.status, r.movedAt, r.moved = sentinel.Running, at, true }

// moved records a sign of progress.
func (s *shim) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported.movedAt, s.reported.moved = time.Now(), true
	if s.reported.overdue {
		s.reported.overdue = false
		notify(s.wake)
	}
}

// status returns what the sentinel shows about the command.
func (s *shim) status() (status sentinel.Status, movedAt time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reported.status, s.reported.movedAt
}

// takeHeartbeat returns the next heartbeat, and whether one is due: always, or only after progress.
func (s *shim) takeHeartbeat() (b lessor.Heartbeat, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order.Task.ExtendOn != lessor.ExtendOnLife && !s.reported.moved {
		s.reported.overdue = true
		return lessor.Heartbeat{}, false
	}
	b = lessor.Heartbeat{
		WorkerID: &s.order.Grant.Lease.WorkerID,
		Progress: s.reported.progress, Message: s.reported.message, Checkpoint: s.reported.checkpoint,
	}
	s.reported.moved, s.reported.progress, s.reported.message, s.reported.checkpoint = false, nil, nil, nil
	return b, true
}

// keep puts back what a heartbeat could not deliver, unless there is something newer.
func (s *shim) keep(b lessor.Heartbeat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported.moved = true
	if s.reported.progress == nil {
		s.reported.progress, s.reported.message = b.Progress, b.Message
	}
	if s.reported.checkpoint == nil {
		s.reported.checkpoint = b.Checkpoint
	}
}

// lastReport returns what the report of the end must carry, because no heartbeat has delivered it.
func (s *shim) lastReport() lessor.Heartbeat {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.reported
	return lessor.Heartbeat{Progress: r.progress, Message: r.message, Checkpoint: r.checkpoint}
}

// notify wakes the goroutine that waits on c, now or at its next wait.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
