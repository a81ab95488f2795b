package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lessor/internal/plainjson"
)

// The bounds of every mailbox. They are the bounds of SQS, so that a program can change from one mailbox to another.
// On a Lessor server the bound of a body is ServerMaxBody.
const (
	// MaxBody is the largest message in bytes.
	MaxBody = 256 << 10
	// MaxBatch is the largest number of messages that one Receive returns.
	MaxBatch = 10
	// MaxVisibility is the longest time for which a delivery, an extension or a Nack can hide a message.
	MaxVisibility = 12 * time.Hour
	// MaxWait is the longest time that one Receive waits for a message.
	MaxWait = 20 * time.Second
	// MaxDeliveries is how often a message is delivered before it becomes a dead letter.
	MaxDeliveries = 5
)

// The errors of mailboxes.
var (
	// ErrReceiptExpired means that the delivery is over: acknowledged, nacked, or not extended in time.
	ErrReceiptExpired = errors.New("receipt handle expired")
	// ErrMailboxClosed is the error of Send and Receive after Close, and of a Receive that Close interrupts.
	ErrMailboxClosed = errors.New("mailbox is closed")
	// ErrMailboxFull is the error of Send when the mailbox holds its maximum of messages, dead letters included.
	ErrMailboxFull = errors.New("mailbox is full")
	// ErrNoReplyTo is the error of Reply when the sender named no mailbox for replies.
	ErrNoReplyTo = errors.New("message has no mailbox for replies")
	// ErrOutOfBounds means that a body, batch, visibility, wait or delay exceeds the bounds of every mailbox.
	ErrOutOfBounds = errors.New("out of bounds")
)

// Mailbox delivers messages, each to one receiver at a time. Its methods are safe for concurrent use.
//
// A mailbox on a server (SQS, Redis, Lessor) is a connection: other processes may send to and receive from the same
// mailbox.
type Mailbox interface {
	// Send puts a message into the mailbox and returns its id. replyTo receives the replies; it is nil or a mailbox
	// of the same kind.
	Send(ctx context.Context, body []byte, replyTo Mailbox) (id string, err error)
	// Receive returns up to maxMessages (1..MaxBatch) waiting messages and hides each for visibility
	// (0..MaxVisibility). If no message is waiting, it waits up to wait (0..MaxWait) for the first one, and then
	// returns none.
	Receive(ctx context.Context, maxMessages int, visibility, wait time.Duration) ([]Message, error)
	// DeadLetters returns up to limit dead letters without removing them, oldest first if the server keeps an order.
	DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error)
	// Close makes waiting receivers return ErrMailboxClosed. Messages that were received can still be finished.
	Close() error
}

// Message is one delivery of a message. The message may be delivered again, to any receiver, once its visibility is
// over. Each delivery has its own receipt; when the delivery is over, its methods return ErrReceiptExpired and change
// nothing.
type Message interface {
	// ID identifies the message. It is the same at every delivery.
	ID() string
	// Receipt identifies the delivery.
	Receipt() string
	// Body returns the body, which the caller must not change.
	Body() []byte
	// Deliveries returns how often the message was delivered, including this time and without returned deliveries: 1,
	// 2, …
	Deliveries() int
	// Acknowledge removes the message: its work is done.
	Acknowledge(ctx context.Context) error
	// Nack gives the message back. It becomes visible after delay (0..MaxVisibility), or a dead letter if this was
	// the last delivery.
	Nack(ctx context.Context, delay time.Duration) error
	// Return gives the message back because the receiver stops. It becomes visible at once, and the delivery does not
	// count.
	Return(ctx context.Context) error
	// Extend hides the message for at least d (0..MaxVisibility) from now. It never shortens the visibility.
	Extend(ctx context.Context, d time.Duration) error
	// Reply sends body to the mailbox that the sender named for replies. The message stays as it is.
	Reply(ctx context.Context, body []byte) error
}

// Journaled is a Message whose mailbox keeps a journal for each message, over all its deliveries. Messages of a
// ServerMailbox are.
type Journaled interface {
	Message
	Journal() *Journal
}

// DeadLetter is a message that was delivered MaxDeliveries times and never acknowledged.
type DeadLetter struct {
	ID         string
	Body       []byte
	Deliveries int
}

// CheckBody refuses a body that no mailbox accepts. Like the other checks it is for implementations of Mailbox.
func CheckBody(body []byte) error {
	if len(body) == 0 || len(body) > MaxBody {
		return fmt.Errorf("a body of %d bytes: %w (1..%d)", len(body), ErrOutOfBounds, MaxBody)
	}
	return nil
}

// CheckReceive refuses arguments of Receive that no mailbox accepts.
func CheckReceive(maxMessages int, visibility, wait time.Duration) error {
	switch {
	case maxMessages < 1 || maxMessages > MaxBatch:
		return fmt.Errorf("a batch of %d messages: %w (1..%d)", maxMessages, ErrOutOfBounds, MaxBatch)
	case wait < 0 || wait > MaxWait:
		return fmt.Errorf("a wait of %s: %w (0..%s)", wait, ErrOutOfBounds, MaxWait)
	}
	return CheckVisibility(visibility)
}

// CheckVisibility refuses a visibility, an extension or a delay that no mailbox accepts.
func CheckVisibility(d time.Duration) error {
	if d < 0 || d > MaxVisibility {
		return fmt.Errorf("hiding a message for %s: %w (0..%s)", d, ErrOutOfBounds, MaxVisibility)
	}
	return nil
}

// SendJSON sends v as JSON.
func SendJSON(ctx context.Context, box Mailbox, v any, replyTo Mailbox) (id string, err error) {
	body, err := plainjson.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode message: %w", err)
	}
	return box.Send(ctx, body, replyTo)
}

// DecodeBody decodes the body of m from JSON.
func DecodeBody[T any](m Message) (T, error) {
	var v T
	if err := json.Unmarshal(m.Body(), &v); err != nil {
		return v, fmt.Errorf("decode message %s: %w", m.ID(), err)
	}
	return v, nil
}
