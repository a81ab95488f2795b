package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"lessor"
)

// Job is one attempt of a job, in the hands of its handler. One made by hand, to test a handler alone, beats to nobody and
// keeps nothing.
type Job[T any] struct {
	lessor.Job
	// Payload is the job's, decoded; Job.Payload is as it was sent.
	Payload T
	// Lease is as it was granted. Hand its Fence to whatever can refuse an older one.
	Lease lessor.Lease

	worker *Worker
	held   *held
}

// Beat says that the work moved. The lease is extended only if its handler has beaten since the last time, so call it
// wherever the work makes progress, as often as you like: it costs nanoseconds.
func (j *Job[T]) Beat() { j.Heartbeat().Beat() }

// Heartbeat is what Beat beats, to be handed to what the work is made of: tools, a Watchdog, a copy loop.
func (j *Job[T]) Heartbeat() *Heartbeat {
	if j.held == nil {
		return new(Heartbeat)
	}
	return &j.held.beats
}

// Report beats and tells how far the work is, from 0 to 1, and what it does, in up to 500 characters. It does not wait: the
// latest report is sent soon, at most once a second.
func (j *Job[T]) Report(progress float64, message string) {
	if j.held == nil {
		return
	}
	j.held.beats.Beat()
	if progress = min(max(progress, 0), 1); math.IsNaN(progress) { // which JSON cannot say
		progress = 0
	}
	if runes := []rune(message); len(runes) > lessor.MaxMessage {
		message = string(runes[:lessor.MaxMessage])
	}
	j.worker.report(j.held, lessor.Heartbeat{Progress: &progress, Message: new(bounded(message))})
}

// SaveCheckpoint beats and keeps v, as JSON of up to 64 KiB, for the next attempt, should there be one. It returns when the
// server has it, which may take until the server can be reached again, or when ctx is done.
func (j *Job[T]) SaveCheckpoint(ctx context.Context, v any) error {
	raw, err := json.Marshal(v)
	switch {
	case err != nil:
		return fmt.Errorf("encode checkpoint: %w", err)
	case len(raw) > lessor.MaxCheckpoint:
		return fmt.Errorf("a checkpoint of %d bytes is too large: at most %d", len(raw), lessor.MaxCheckpoint)
	case j.held == nil:
		return nil
	}
	j.held.beats.Beat()
	return j.worker.save(ctx, j.held, raw)
}

// LoadCheckpoint decodes what the last attempt saved. It returns false if there is nothing.
func (j *Job[T]) LoadCheckpoint(into any) (bool, error) {
	if len(j.Checkpoint) == 0 || string(j.Checkpoint) == "null" {
		return false, nil
	}
	if err := json.Unmarshal(j.Checkpoint, into); err != nil {
		return false, fmt.Errorf("decode checkpoint: %w", err)
	}
	return true, nil
}

// Draining is closed when the worker begins to stop. Work that takes longer than the worker's DrainTimeout can save a
// checkpoint then, and return Release(0).
func (j *Job[T]) Draining() <-chan struct{} {
	if j.held == nil {
		return nil
	}
	return j.worker.draining
}

// save sends a checkpoint until it is acknowledged or refused.
func (w *Worker) save(ctx context.Context, l *held, raw json.RawMessage) error {
	for failures := 1; ; failures++ {
		sign := w.sign(l)
		answer, err := w.cfg.Client.Heartbeat(ctx, l.id(), lessor.Heartbeat{WorkerID: &w.cfg.ID, Checkpoint: raw})
		switch {
		case err == nil:
			w.heard(sign, answer, nil)
			return nil
		case over(err):
			w.heard(sign, answer, err)
			return fmt.Errorf("save checkpoint: %w: %w", ErrLeaseLost, err)
		case !transient(err):
			return fmt.Errorf("save checkpoint: %w", err)
		case !pause(ctx, max(lessor.RetryPause(failures), retryAfter(err))):
			return fmt.Errorf("save checkpoint: %w: %w", context.Cause(ctx), err)
		}
	}
}
