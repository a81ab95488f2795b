package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"lessor/internal/plainjson"
)

var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")

// attempt runs l's handler and decides how its lease ends. The methods of what the handler returns, such as Error and
// MarshalJSON, are also code of the user: they may panic or end the goroutine, as the handler may.
func (w *Worker) attempt(l *lease) {
	ctx, span := w.trace(l)
	var result any
	err, panicked := errGoexit, false
	caught := func(r any) {
		if r != nil {
			err, panicked = fmt.Errorf("panic: %v\n\n%s", r, debug.Stack()), true
		}
	}
	e, send := failed(err, false), true
	defer func() {
		if r := recover(); r != nil { // conclude panicked
			caught(r)
			e, send = failed(err, false), true
		}
		switch {
		case panicked:
			w.log.Warn("A handler panicked", l.attrs("error", err)...)
		case e.status == "failed":
			w.log.Warn("An attempt failed", l.attrs("error", e.err, "retryable", !e.final)...)
		}
		endSpan(span, e, send, err)
		w.returned(l, e, send)
	}()
	defer func() {
		caught(recover())
		if l.output.flush != nil {
			l.output.flush()
		}
		e, send = w.conclude(l, result, err)
	}()
	result, err = l.handler.call(ctx, w, l)
}

// conclude decides how l ends after its handler has returned. send is false if the lease is over or will expire.
func (w *Worker) conclude(l *lease, result any, err error) (e end, send bool) {
	w.mu.Lock()
	gone, stuck, silent := l.gone, l.stuck, l.silent
	w.mu.Unlock()
	if gone || stuck {
		return end{}, false
	}
	if err == nil {
		return completed(result), true
	}
	cause := context.Cause(l.ctx)
	if back, ok := errors.AsType[*releaseError](err); ok {
		return end{release: true, delay: back.delay}, true
	}
	if question, ok := errors.AsType[*askError](err); ok {
		return end{status: "waiting", asks: question}, true
	}
	if _, ok := errors.AsType[*permanentError](err); ok {
		return failed(err, true), true
	}
	switch {
	case errors.Is(cause, ErrCancelled):
		return end{status: "cancelled"}, true
	case errors.Is(cause, ErrDraining):
		return end{release: true}, true
	case errors.Is(cause, ErrMaxRuntime): // the server fails the attempt
		return end{}, false
	case errors.Is(cause, ErrLeaseLost) && silent: // the lease expires, which costs an attempt
		return end{}, false
	case errors.Is(cause, ErrLeaseLost): // the server did not answer, which is not the fault of the job
		return end{release: true}, true
	}
	return failed(err, false), true
}

func completed(result any) end {
	if result == nil {
		return end{status: "completed"}
	}
	raw, err := plainjson.Marshal(result)
	if err != nil {
		return failed(fmt.Errorf("encode result: %w", err), true)
	}
	return end{status: "completed", result: raw}
}

func failed(err error, final bool) end {
	text := bounded(err.Error())
	if text == "" {
		text = "failed without a message"
	}
	return end{status: "failed", err: text, final: final}
}

// returned frees the slot of l and queues its end.
func (w *Worker) returned(l *lease, e end, send bool) {
	w.mu.Lock()
	stuck := l.stuck
	w.freeLocked(l)
	if send && !stuck {
		w.finishLocked(l, e)
	} else {
		w.forgetLocked(l)
	}
	w.mu.Unlock()
	switch {
	case stuck:
		w.log.Warn("A handler returned after its lease was given up: its result is refused", l.attrs()...)
	case !send:
		w.log.Info("A handler returned after its lease was lost", l.attrs("cause", context.Cause(l.ctx))...)
	}
}
