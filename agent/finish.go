package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"lessor/internal/pause"
	"lessor/internal/plainjson"
	"lessor/worker"
)

// The delays before a failed request is delivered again. They grow with each delivery.
const (
	retryDelay    = 60 * time.Second
	maxRetryDelay = 15 * time.Minute
)

// The bounds of the calls that end a message.
const (
	// finishTimeout is long enough for a server that is replaced.
	finishTimeout = time.Minute
	// stopTimeout is how long the calls may take once the loop stops: the platform is about to kill the process.
	stopTimeout = 10 * time.Second
)

// maxError bounds the text of an error in a reply.
const maxError = 8 << 10

var errUnencodable = errors.New("encode reply")

// Result is the reply to a request.
type Result[Out any] struct {
	// RequestID is the id that Send returned.
	RequestID string `json:"request_id"`
	// Output is nil if there is an error.
	Output *Out   `json:"output"`
	Error  string `json:"error,omitempty"`
}

// DeadLetter is a request whose last delivery failed.
type DeadLetter struct {
	RequestID string `json:"request_id"`
	// Request is the body of the request if it is JSON; otherwise Body holds it.
	Request    json.RawMessage `json:"request,omitempty"`
	Body       []byte          `json:"body,omitempty"`
	Deliveries int             `json:"deliveries"`
	Error      string          `json:"error"`
}

// finish ends a message according to the outcome of its work. If that fails, it logs the error, and the message is
// delivered again.
func (l *Loop[Req, Out]) finish(ctx context.Context, m worker.Message, out Out, failure error) {
	stopped := ctx.Err() != nil
	ctx, cancel := finishing(ctx)
	defer cancel()
	var err error
	switch {
	case failure == nil:
		err = l.answer(ctx, m, Result[Out]{RequestID: m.ID(), Output: &out})
	case stopped:
		err = m.Return(ctx) // the loop stops; the delivery does not count
	case l.cfg.DeadLetters == nil:
		err = l.answer(ctx, m, Result[Out]{RequestID: m.ID(), Error: text(failure)})
	case m.Deliveries() < worker.MaxDeliveries:
		err = m.Nack(ctx, delayAfter(m.Deliveries()))
	default:
		if err = l.deadLetter(ctx, m, failure); err == nil {
			err = l.answer(ctx, m, Result[Out]{RequestID: m.ID(), Error: text(failure)})
		}
	}
	if failure != nil && !stopped {
		l.cfg.Log.Warn("A request failed", "message", m.ID(), "delivery", m.Deliveries(), "error", failure)
	}
	if err != nil {
		l.cfg.Log.Warn("A request could not be finished and will be delivered again", "message", m.ID(), "error", err)
	}
}

// finishing returns a context for the calls that end a message.
func finishing(work context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), finishTimeout)
	ignore := context.AfterFunc(work, func() {
		pause.For(ctx, stopTimeout)
		cancel()
	})
	return ctx, func() {
		ignore()
		cancel()
	}
}

// answer replies and acknowledges. If the reply cannot be sent, it gives the message back, because an acknowledged
// message would be lost.
func (l *Loop[Req, Out]) answer(ctx context.Context, m worker.Message, r Result[Out]) error {
	err := l.reply(ctx, m, r)
	if errors.Is(err, errUnencodable) || errors.Is(err, worker.ErrOutOfBounds) {
		// Another delivery would fail in the same way.
		err = l.reply(ctx, m, Result[Out]{RequestID: r.RequestID, Error: "the output cannot be sent: " + text(err)})
	}
	switch {
	case errors.Is(err, worker.ErrReceiptExpired):
		return err // another worker has the message now
	case err != nil && !errors.Is(err, worker.ErrNoReplyTo):
		return errors.Join(fmt.Errorf("reply: %w", err), m.Nack(ctx, delayAfter(m.Deliveries())))
	}
	return m.Acknowledge(ctx)
}

// reply sends a result. It fails with worker.ErrOutOfBounds if the mailbox of the message, or that of the sender, does
// not accept a body of this length: each has its own bound.
func (l *Loop[Req, Out]) reply(ctx context.Context, m worker.Message, r Result[Out]) error {
	body, err := l.encode(r)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnencodable, err)
	}
	if err := worker.CheckBody(body); err != nil {
		return err
	}
	return m.Reply(ctx, body)
}

// encode returns r as JSON. It returns a panic of the output's methods as an error.
func (l *Loop[Req, Out]) encode(r Result[Out]) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.cfg.Log.Error("The encoding of an output panicked",
				"message", r.RequestID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the output panicked: %v", p)
		}
	}()
	return plainjson.Marshal(r)
}

// deadLetter sends the request to the dead letters. If that fails, the mailbox makes it one of its own dead letters.
func (l *Loop[Req, Out]) deadLetter(ctx context.Context, m worker.Message, failure error) error {
	d := DeadLetter{RequestID: m.ID(), Deliveries: m.Deliveries(), Error: text(failure)}
	if json.Valid(m.Body()) {
		d.Request = m.Body()
	} else {
		d.Body = m.Body()
	}
	// A worker that hung must not give up a request on which another worker is working.
	if err := m.Extend(ctx, finishTimeout); err != nil {
		return err
	}
	if _, err := worker.SendJSON(ctx, l.cfg.DeadLetters, d, nil); err != nil {
		return errors.Join(fmt.Errorf("send to the dead letters: %w", err), m.Nack(ctx, 0))
	}
	return nil
}

// delayAfter returns the delay before the next delivery.
func delayAfter(deliveries int) time.Duration {
	return min(time.Duration(deliveries)*retryDelay, maxRetryDelay)
}

// text returns the text of an error for the sender.
func text(err error) string {
	s := strings.ToValidUTF8(err.Error(), "\uFFFD")
	return strings.ToValidUTF8(s[:min(len(s), maxError)], "")
}
