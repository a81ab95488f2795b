package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"lessor/worker"
)

// Delays before a request that failed is tried again: they grow with each delivery, so that what is broken has time
// to mend.
const (
	retryDelay    = 60 * time.Second
	maxRetryDelay = 15 * time.Minute
)

// finishTimeout bounds what is left to do when the work is done, also after ctx.
const finishTimeout = 10 * time.Second

// maxError bounds the text of an error in a reply.
const maxError = 8 << 10

// Result is the reply to a request.
type Result[Out any] struct {
	// RequestID is the id that Send returned.
	RequestID string `json:"request_id"`
	// Output is nil beside an error.
	Output *Out   `json:"output"`
	Error  string `json:"error,omitempty"`
}

// DeadLetter is a request whose last delivery failed.
type DeadLetter struct {
	RequestID string `json:"request_id"`
	// Request is the body as it was sent, if that is JSON; else it is in Body.
	Request    json.RawMessage `json:"request,omitempty"`
	Body       []byte          `json:"body,omitempty"`
	Deliveries int             `json:"deliveries"`
	Error      string          `json:"error"`
}

// finish tells what came of a message. What fails here is logged and leaves the message to be delivered again.
func (l *Loop[Req, Out]) finish(ctx context.Context, m worker.Message, out Out, failure error) {
	stopped := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	var err error
	switch {
	case failure == nil:
		err = l.answer(ctx, m, Result[Out]{RequestID: m.ID(), Output: &out})
	case stopped:
		err = m.Return(ctx) // not the request's fault
	case l.cfg.DeadLetters == nil:
		err = l.answer(ctx, m, Result[Out]{RequestID: m.ID(), Error: text(failure)})
	case m.Deliveries() < worker.MaxDeliveries:
		err = m.Nack(ctx, delayAfter(m.Deliveries()))
	default:
		if err = l.bury(ctx, m, failure); err == nil {
			err = l.answer(ctx, m, Result[Out]{RequestID: m.ID(), Error: text(failure)})
		}
	}
	if failure != nil {
		l.cfg.Log.Warn("A request failed", "message", m.ID(), "delivery", m.Deliveries(), "error", failure)
	}
	if err != nil {
		l.cfg.Log.Warn("A request could not be finished and will be delivered again", "message", m.ID(), "error", err)
	}
}

// answer replies and acknowledges. A reply that cannot be sent gives the message back: acknowledged, it would be lost.
func (l *Loop[Req, Out]) answer(ctx context.Context, m worker.Message, r Result[Out]) error {
	body, err := json.Marshal(r)
	if err == nil {
		err = worker.CheckBody(body)
	}
	if err != nil { // no delivery will make it better
		if body, err = json.Marshal(Result[Out]{
			RequestID: r.RequestID,
			Error:     "the output cannot be sent: " + text(err),
		}); err != nil {
			return fmt.Errorf("encode reply: %w", err)
		}
	}
	err = m.Reply(ctx, body)
	switch {
	case errors.Is(err, worker.ErrReceiptExpired):
		return err // somebody else has the message now
	case err != nil && !errors.Is(err, worker.ErrNoReplyTo):
		return errors.Join(fmt.Errorf("reply: %w", err), m.Nack(ctx, delayAfter(m.Deliveries())))
	}
	return m.Acknowledge(ctx)
}

// bury sends the request to the dead letters. Where that fails, the mailbox keeps it among its own.
func (l *Loop[Req, Out]) bury(ctx context.Context, m worker.Message, failure error) error {
	d := DeadLetter{RequestID: m.ID(), Deliveries: m.Deliveries(), Error: text(failure)}
	if json.Valid(m.Body()) {
		d.Request = m.Body()
	} else {
		d.Body = m.Body()
	}
	// A hung worker that woke up must not bury what another works on.
	if err := m.Extend(ctx, finishTimeout); err != nil {
		return err
	}
	if _, err := worker.SendJSON(ctx, l.cfg.DeadLetters, d, nil); err != nil {
		return errors.Join(fmt.Errorf("send to the dead letters: %w", err), m.Nack(ctx, 0))
	}
	return nil
}

// delayAfter is the delay before the next delivery.
func delayAfter(deliveries int) time.Duration {
	return min(time.Duration(deliveries)*retryDelay, maxRetryDelay)
}

// text returns what a sender is told of an error.
func text(err error) string {
	s := strings.ToValidUTF8(err.Error(), "\uFFFD")
	return strings.ToValidUTF8(s[:min(len(s), maxError)], "")
}
