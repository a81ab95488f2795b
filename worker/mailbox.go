package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Bounds of every mailbox. They are those of SQS, so that a program can change from one to another; on a Lessor server bodies are bounded by ServerMaxBody.
const (
	// MaxBody is how many bytes a message may have.
	MaxBody = 256 << 10
	// MaxBatch is how many messages one Receive returns at most.
	MaxBatch = 10
	// MaxVisibility bounds the time a message can be hidden: by a delivery, an extension or a Nack.
	MaxVisibility = 12 * time.Hour
	// MaxWait bounds the time that one Receive waits for a message.
	MaxWait = 20 * time.Second
	// MaxDeliveries is how often a message is handed out before it becomes a dead letter.
	MaxDeliveries = 5
)

// The refusals of mailboxes.
var (
	// ErrReceiptExpired answers every use of a delivery that is over: acknowledged, nacked, or not extended in time.
	ErrReceiptExpired = errors.New("receipt handle expired")
	// ErrMailboxClosed answers Send and Receive after Close, also a Receive that was waiting.
	ErrMailboxClosed = errors.New("mailbox is closed")
	// ErrMailboxFull answers Send when the mailbox holds as many messages as it may, dead letters included.
	ErrMailboxFull = errors.New("mailbox is full")
	// ErrNoReplyTo answers Reply when the sender named no mailbox for replies.
	ErrNoReplyTo = errors.New("message has no mailbox for replies")
	// ErrOutOfBounds answers a body, batch, visibility, wait or delay that is outside the bounds of every mailbox.
	ErrOutOfBounds = errors.New("out of bounds")
)

// Mailbox hands out messages, each to one receiver at a time. Its methods may be called at once.
//
// A mailbox that is made for a server (SQS, Redis, Lessor) is one end of it: others may send and receive at other ends.
type Mailbox interface {
	// Send puts a message into the mailbox and returns its id. replyTo says where Reply goes: nil for nowhere, else a mailbox
	// of the same kind.
	Send(ctx context.Context, body []byte, replyTo Mailbox) (id string, err error)
	// Receive returns up to maxMessages (1..MaxBatch) that are waiting, hiding each for visibility (0..MaxVisibility). Where
	// none is waiting it waits up to wait (0..MaxWait) for the first; none by then is an empty answer, not an error.
	Receive(ctx context.Context, maxMessages int, visibility, wait time.Duration) ([]Message, error)
	// DeadLetters returns up to limit dead letters, oldest first where the server keeps an order. They stay where they are.
	DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error)
	// Close wakes receivers with ErrMailboxClosed. Messages that were received may still be finished.
	Close() error
}

// Message is one delivery. What it refers to may be delivered again, to others too, once its visibility is over; each
// delivery has a receipt of its own, and the methods of one that is over return ErrReceiptExpired and change nothing.
type Message interface {
	// ID is the message's own, the same at every delivery.
	ID() string
	// Receipt is this delivery's own.
	Receipt() string
	// Body must not be changed.
	Body() []byte
	// Deliveries is how often the message was handed out, this time included and those that were returned left out: 1, 2, …
	Deliveries() int
	// Acknowledge removes the message: its work is done.
	Acknowledge(ctx context.Context) error
	// Nack gives the message back, to be seen again after delay (0..MaxVisibility). At the last delivery it becomes a dead
	// letter at once.
	Nack(ctx context.Context, delay time.Duration) error
	// Return gives the message back, to be seen again at once, because its receiver stops: this delivery does not count.
	Return(ctx context.Context) error
	// Extend hides the message for at least d (0..MaxVisibility) from now on. It never shortens.
	Extend(ctx context.Context, d time.Duration) error
	// Reply sends body to where the sender wants replies. The message stays as it is.
	Reply(ctx context.Context, body []byte) error
}

// DeadLetter is a message that was delivered MaxDeliveries times and never acknowledged.
type DeadLetter struct {
	ID         string
	Body       []byte
	Deliveries int
}

// CheckBody refuses a body that no mailbox takes. Like the other checks it is for those who write a mailbox.
func CheckBody(body []byte) error {
	if len(body) == 0 || len(body) > MaxBody {
		return fmt.Errorf("a body of %d bytes: %w (1..%d)", len(body), ErrOutOfBounds, MaxBody)
	}
	return nil
}

// CheckReceive refuses what no mailbox can be asked for.
func CheckReceive(maxMessages int, visibility, wait time.Duration) error {
	switch {
	case maxMessages < 1 || maxMessages > MaxBatch:
		return fmt.Errorf("a batch of %d messages: %w (1..%d)", maxMessages, ErrOutOfBounds, MaxBatch)
	case wait < 0 || wait > MaxWait:
		return fmt.Errorf("a wait of %s: %w (0..%s)", wait, ErrOutOfBounds, MaxWait)
	}
	return CheckVisibility(visibility)
}

// CheckVisibility refuses a visibility, an extension or a delay for which no mailbox hides a message.
func CheckVisibility(d time.Duration) error {
	if d < 0 || d > MaxVisibility {
		return fmt.Errorf("hiding a message for %s: %w (0..%s)", d, ErrOutOfBounds, MaxVisibility)
	}
	return nil
}

// SendJSON sends v as JSON.
func SendJSON(ctx context.Context, box Mailbox, v any, replyTo Mailbox) (id string, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode message: %w", err)
	}
	return box.Send(ctx, body, replyTo)
}

// DecodeBody reads the body of m as JSON.
func DecodeBody[T any](m Message) (T, error) {
	var v T
	if err := json.Unmarshal(m.Body(), &v); err != nil {
		return v, fmt.Errorf("decode message %s: %w", m.ID(), err)
	}
	return v, nil
}
