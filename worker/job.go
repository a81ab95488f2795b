package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"lessor"
	"lessor/internal/plainjson"
)

// Job is one attempt of a job, as its handler receives it. The methods of a Job that a test has made by hand send
// nothing.
type Job[T any] struct {
	lessor.Job
	// Payload is the decoded payload; Job.Payload holds it as it was sent.
	Payload T
	// Lease is the lease as it was granted. Pass its Fence to systems that can refuse an older one.
	Lease lessor.Lease

	worker *Worker
	lease  *lease
	byHand *Journal // of a Job without a lease
}

// Beat reports that the work made progress. The worker extends the lease only if the handler has called Beat since
// the last extension, so call it wherever the work moves, as often as you like: a call takes nanoseconds.
func (j *Job[T]) Beat() { j.Heartbeat().Beat() }

// Heartbeat returns the heartbeat of this job, for code that must beat without knowing the job: tools, a copy loop, a
// Watchdog.
func (j *Job[T]) Heartbeat() *Heartbeat {
	if j.lease == nil {
		return new(Heartbeat)
	}
	return &j.lease.beats
}

// Report beats and reports the progress of the work, from 0 to 1, and a message of up to 500 characters. It does not
// wait: the worker sends the latest report soon, at most once per second.
func (j *Job[T]) Report(progress float64, message string) {
	if j.lease == nil {
		return
	}
	j.lease.beats.Beat()
	if progress = min(max(progress, 0), 1); math.IsNaN(progress) { // JSON has no NaN
		progress = 0
	}
	if runes := []rune(message); len(runes) > lessor.MaxMessage {
		message = string(runes[:lessor.MaxMessage])
	}
	j.worker.report(j.lease, lessor.Heartbeat{Progress: &progress, Message: new(bounded(message))})
}

// SaveCheckpoint beats and stores v for the next attempt, as JSON of up to 64 KiB. It returns when the server has
// stored it or refused it, or when ctx is done; it repeats the call while no server can be reached.
func (j *Job[T]) SaveCheckpoint(ctx context.Context, v any) error {
	raw, err := plainjson.Marshal(v)
	switch {
	case err != nil:
		return fmt.Errorf("encode checkpoint: %w", err)
	case len(raw) > lessor.MaxCheckpoint:
		return fmt.Errorf("a checkpoint of %d bytes is too large: at most %d", len(raw), lessor.MaxCheckpoint)
	case j.lease == nil:
		return nil
	}
	j.lease.beats.Beat()
	return j.worker.save(ctx, j.lease, "save checkpoint", func() (lessor.HeartbeatAnswer, error) {
		id := &j.worker.cfg.ID
		return j.worker.cfg.Client.Heartbeat(ctx, j.lease.id(), lessor.Heartbeat{WorkerID: id, Checkpoint: raw})
	})
}

// LoadCheckpoint decodes the checkpoint of an earlier attempt. It returns false if there is none.
func (j *Job[T]) LoadCheckpoint(into any) (bool, error) {
	if len(j.Checkpoint) == 0 || string(j.Checkpoint) == "null" {
		return false, nil
	}
	if err := json.Unmarshal(j.Checkpoint, into); err != nil {
		return false, fmt.Errorf("decode checkpoint: %w", err)
	}
	return true, nil
}

// Draining returns a channel that is closed when the worker begins to stop. A handler that needs longer than the
// worker's DrainTimeout can then save a checkpoint and return Release(0).
func (j *Job[T]) Draining() <-chan struct{} {
	if j.lease == nil {
		return nil
	}
	return j.worker.draining
}

// save sends a heartbeat that must not be lost, until it is acknowledged or refused.
func (w *Worker) save(
	ctx context.Context, l *lease, verb string, send func() (lessor.HeartbeatAnswer, error),
) error {
	return insist(ctx, verb, func() error {
		w.mu.Lock()
		call := w.newBeatCall(l)
		w.mu.Unlock()
		answer, err := send()
		switch {
		case err == nil:
			w.acknowledged(call, answer, nil)
		case over(err):
			w.acknowledged(call, answer, err)
			return fmt.Errorf("%w: %w", ErrLeaseLost, err)
		}
		return err
	})
}
