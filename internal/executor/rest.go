package executor

import (
	"context"
	"errors"
	"sync"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/pause"
	"lessor/internal/printer"
)

const (
	// restTime bounds the rest of the output while a server answers: it takes the 2 MiB that it keeps of an attempt
	// within that time on a line of 1 Mbit/s.
	restTime = 30 * time.Second
	// stopRestTime is the bound for a command that was stopped: the platform is about to kill the shim, and most of
	// stopReserve is for giving the lease back.
	stopRestTime = 500 * time.Millisecond
	// maxRefused bounds the answers in a row that do not come from Lessor, such as those of a gateway to bodies that
	// are too large for it. With the pauses it takes about a second, in which other faults of a gateway may pass.
	maxRefused = 5
)

var errSlowOutput = errors.New("a server answers, but does not take the output in time")

// rest is what the server does not have of the output of a command that has ended. It is sent before the end of the
// attempt is reported, and must not cost the job that end.
type rest struct {
	printer *printer.Printer
	// check is called at each interval while output is sent. It returns nil if a server answers and the lease lives.
	check    func(context.Context) error
	interval time.Duration
	limit    time.Duration
}

// send returns nil when the server has the rest or wants no more, and otherwise why it gave up: the lease is over, ctx
// is done, something before the server refuses the output, or a server that answers does not take it within the limit.
// While no server answers it goes on.
func (r rest) send(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var checking sync.WaitGroup
	defer checking.Wait()
	defer cancel(nil)
	checking.Go(func() { cancel(r.bound(ctx)) })
	refused := 0
	for failures := 1; ; failures++ {
		err := r.printer.Flush(ctx)
		if isForeign(err) {
			refused++
		} else {
			refused = 0
		}
		if err == nil || isOver(err) || refused == maxRefused {
			return err
		}
		if !pause.For(ctx, retryPause(failures)) {
			return context.Cause(ctx)
		}
	}
}

// bound returns why no more is to be sent, or nil when ctx is done.
func (r rest) bound(ctx context.Context) error {
	since := time.Now()
	for pause.For(ctx, min(r.interval, r.limit)) {
		err := r.check(ctx)
		switch {
		case isOver(err), errors.Is(err, errSuperseded), errors.Is(err, errGone):
			return err
		case err != nil: // in an outage the end would not arrive either
			since = time.Now()
		case time.Since(since) >= r.limit:
			return errSlowOutput
		}
	}
	return nil
}

// isForeign reports whether something that is not Lessor answered.
func isForeign(err error) bool {
	_, unreachable := errors.AsType[*client.UnreachableError](err)
	return err != nil && !unreachable && lessor.CodeOf(err) == ""
}

// keepAlive sends a heartbeat that reports nothing and confirms no messages: the command has ended, so messages are for
// the next attempt.
func keepAlive(ctx context.Context, c *client.Client, lease lessor.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, patience(lease))
	defer cancel()
	_, err := c.Heartbeat(ctx, lease.ID, lessor.Heartbeat{WorkerID: &lease.WorkerID})
	return err
}

// restInterval is the time between two heartbeats while output is sent. The last heartbeat of the command may be as old
// as the server's pace, so the first comes after half of that.
func restInterval(lease lessor.Lease) time.Duration {
	return time.Duration(max(lease.HeartbeatAfterMS/2, 1)) * time.Millisecond
}

// sendRest sends the rest of the output and keeps the lease meanwhile. If the shim is to end, it has stopRestTime left.
func (s *shim) sendRest(ctx context.Context, limit time.Duration) {
	lease := s.order.Grant.Lease
	sending, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if pause.For(sending, stopRestTime) {
			cancel(errTerminated)
		}
	})()
	check := func(ctx context.Context) error {
		switch {
		case s.superseded():
			return errSuperseded
		case s.folder.Gone():
			return errGone
		}
		return keepAlive(ctx, s.client, lease)
	}
	left := rest{printer: s.printer, check: check, interval: restInterval(lease), limit: limit}
	if err := left.send(sending); err != nil {
		s.log.Warn("the rest of the output is not sent", "error", err)
	}
}
