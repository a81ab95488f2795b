package lanes

import (
	"math"

	"lessor"
	"lessor/internal/rules"
)

// entry is a rules.Turn without its lane, in 48 bytes and without pointers: a million of them are kept.
type entry struct {
	job           lessor.JobID
	seq           int64
	fence         int64 // below 0: minus the RowRef of a job that was never leased
	queuedAt      lessor.Instant
	attempt       uint16
	maxAttempts   uint16
	interruptions uint16
	steps         uint16
}

func (e *entry) write(t *rules.Turn) {
	e.job = t.Job
	e.seq = t.Seq
	e.fence = t.Fence
	if t.RowRef != 0 {
		e.fence = -t.RowRef
	}
	e.queuedAt = t.QueuedAt
	e.attempt = small(t.Attempt)
	e.maxAttempts = small(t.MaxAttempts)
	e.interruptions = small(t.Interruptions)
	e.steps = small(t.Steps)
}

// small converts a count. The rules bound it far below the maximum (50 attempts and one more for each retry by hand, 20
// interruptions, five entries of the record for each).
func small(n int) uint16 { return uint16(min(max(n, 0), math.MaxUint16)) }

// read writes the turn to t, field by field: to make it elsewhere and copy it would take a tenth of the time of a
// grant.
func (e *entry) read(t *rules.Turn, lane rules.LaneID) {
	t.Job = e.job
	t.Lane = lane
	t.Seq = e.seq
	t.Attempt = int(e.attempt)
	t.MaxAttempts = int(e.maxAttempts)
	t.Interruptions = int(e.interruptions)
	t.Fence, t.RowRef = max(e.fence, 0), max(-e.fence, 0)
	t.Steps = int(e.steps)
	t.QueuedAt = e.queuedAt
}
