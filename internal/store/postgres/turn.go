package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// turnColumns is the standing of a job, which travels with it through all places.
const (
	turnColumns = "job, lane, seq, attempt, max_attempts, interruptions, fence, steps, queued_at"
	turnTypes   = "uiiiiiiii"
)

var readQueue = sql("select " + turnColumns + " from queue order by seq")

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

// EachQueued implements scheduler.View, in the order of the line.
func (v *view) EachQueued(_ context.Context, fn func(rules.Turn) error) error {
	return v.query("read queue", readQueue, func(r *row) error { return fn(readTurn(r)) })
}
