package postgres

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
)

// turnColumns is the standing of a job, which travels with it through all places.
const (
	turnColumns = "job, lane, seq, attempt, max_attempts, interruptions, fence, steps, queued_at"
	turnTypes   = "uiiiiiiii"
)

func bindTurn(r *wire.Rows, t *rules.Turn) {
	r.ID(t.Job.UUID)
	r.Int(int64(t.Lane))
	r.Int(t.Seq)
	r.Int(int64(t.Attempt))
	r.Int(int64(t.MaxAttempts))
	r.Int(int64(t.Interruptions))
	r.Int(t.Fence)
	r.Int(int64(t.Steps))
	r.Instant(t.QueuedAt)
}

func readTurn(r *wire.Row) rules.Turn {
	return rules.Turn{
		Job:           lessor.JobID{UUID: r.ID()},
		Lane:          rules.LaneID(r.Int()),
		Seq:           r.Int(),
		Attempt:       int(r.Int()),
		MaxAttempts:   int(r.Int()),
		Interruptions: int(r.Int()),
		Fence:         r.Int(),
		Steps:         int(r.Int()),
		QueuedAt:      r.Instant(),
	}
}
