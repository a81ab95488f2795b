package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"lessor"
)

// ExtendOn says what keeps the lease of a running job alive. See lessor.ExtendOn.
type ExtendOn = lessor.ExtendOn

// The values of ExtendOn. With ExtendOnLife a handler that hangs keeps its lease until the process ends or the job's
// max_runtime_s is over.
const (
	ExtendOnProgress = lessor.ExtendOnProgress // while the handler beats
	ExtendOnLife     = lessor.ExtendOnLife     // until the handler returns; for handlers that cannot beat
)

// HandlerConfig says how jobs of one type are run.
type HandlerConfig struct {
	// Concurrency is how many jobs of this type may run at once. Zero means Config.Concurrency.
	Concurrency int
	// ExtendOn is ExtendOnProgress unless set.
	ExtendOn ExtendOn
}

// The bounds of one lease request.
const (
	maxTypes = 200
	maxType  = 120
)

// handler runs jobs of one type.
type handler struct {
	jobType  string
	limit    int // jobs that may run at once
	extendOn ExtendOn
	call     func(ctx context.Context, w *Worker, l *lease) (any, error)
	running  int // guarded by Worker.mu
	asked    int // places that requests on their way may fill; guarded by Worker.mu
}

// Handle makes w run the jobs of jobType with do. The payload is decoded from JSON into T; a payload that does not
// fit fails the attempt. The value that do returns is encoded as JSON and becomes the result of the job. An error
// fails the attempt, which is retried unless the error is Permanent; the error Release gives the job back. A panic
// counts as an error and its text includes the stack. The context of do ends, with a cause, when the job must stop.
//
// Handle panics if the type already has a handler, if no server would accept it, or if w is already running: these
// are mistakes in the program.
func Handle[T any](
	w *Worker, jobType string, do func(ctx context.Context, job *Job[T]) (any, error), cfg ...HandlerConfig,
) {
	var c HandlerConfig
	if len(cfg) > 0 {
		c = cfg[0]
	}
	h := &handler{jobType: jobType, limit: w.cfg.Concurrency, extendOn: c.ExtendOn}
	if c.Concurrency > 0 {
		h.limit = min(c.Concurrency, h.limit)
	}
	h.call = func(ctx context.Context, w *Worker, l *lease) (any, error) {
		job := &Job[T]{Job: l.grant.Job, Lease: l.grant.Lease, worker: w, lease: l}
		if err := json.Unmarshal(l.grant.Job.Payload, &job.Payload); err != nil {
			return nil, fmt.Errorf("decode payload: %w", err)
		}
		return do(ctx, job)
	}
	w.register(h)
}

func (w *Worker) register(h *handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch n := utf8.RuneCountInString(h.jobType); {
	case n < 1 || n > maxType:
		panic(fmt.Sprintf("worker: a job type has 1 to %d characters, not %d", maxType, n))
	case w.handlers[h.jobType] != nil:
		panic(fmt.Sprintf("worker: %q has a handler already", h.jobType))
	case len(w.handlers) == maxTypes:
		panic(fmt.Sprintf("worker: at most %d types can be handled", maxTypes))
	case w.begun:
		panic("worker: Handle was called after Run")
	}
	w.handlers[h.jobType] = h
}
