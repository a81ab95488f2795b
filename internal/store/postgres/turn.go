package postgres

import (
	"lessor"
	"lessor/internal/rules"
)

// turnColumns is the standing of a job, which travels with it through all places.
const (
	turnColumns = "job, lane, seq, attempt, max_attempts, interruptions, fence, steps, queued_at"
	turnTypes   = "uiiiiiiii"
)

func bindTurn(r *rows, t *rules.Turn) {
	r.id(t.Job.UUID)
	r.int(int64(t.Lane))
	r.int(t.Seq)
	r.int(int64(t.Attempt))
	r.int(int64(t.MaxAttempts))
	r.int(int64(t.Interruptions))
	r.int(t.Fence)
	r.int(int64(t.Steps))
	r.instant(t.QueuedAt)
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
