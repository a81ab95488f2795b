package sqlite

import (
	"lessor"
	"lessor/internal/rules"
)

// turnColumns is the standing of a job, which travels with it through all places.
const turnColumns = "job, lane, seq, attempt, max_attempts, interruptions, fence, steps, queued_at"

func bindTurn(a *args, t *rules.Turn) {
	a.id(t.Job.UUID)
	a.int(int64(t.Lane))
	a.int(t.Seq)
	a.int(int64(t.Attempt))
	a.int(int64(t.MaxAttempts))
	a.int(int64(t.Interruptions))
	a.int(t.Fence)
	a.int(int64(t.Steps))
	a.instant(t.QueuedAt)
}

func readTurn(r *row) rules.Turn {
	return rules.Turn{
		Job:           lessor.JobID{UUID: r.id()},
		Lane:          rules.LaneID(r.int()),
		Seq:           r.int(),
		Attempt:       int(r.int()),
		MaxAttempts:   int(r.int()),
		Interruptions: int(r.int()),
		Fence:         r.int(),
		Steps:         int(r.int()),
		QueuedAt:      r.instant(),
	}
}
