package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"lessor"
	"lessor/client"
)

// ServerMaxBody is the largest message in bytes on a server with the default payload limit of 256 KiB: bodies that
// are not text are sent as base64, and 2 KiB are left for the fields around them.
const ServerMaxBody = (256<<10 - 2<<10) / 4 * 3

// ServerMailboxConfig configures a ServerMailbox. Client and Type are required.
type ServerMailboxConfig struct {
	Client *client.Client
	// Type is the name of the mailbox: its messages are the jobs of this type. No other worker may handle the type.
	Type string
	// ID names the receiver in the server's lists and records. The default is the host name and a random suffix.
	ID string
	// Tenant is the tenant of the messages that are sent. The default is none.
	Tenant string
}

// ServerMailbox is a mailbox on a Lessor server. A message is a job, a delivery is a lease whose ttl is the
// visibility (at least 100 ms), and a dead letter is a job that failed for good. The latest reply also becomes the
// result of the job. DeadLetters needs a token that may read jobs.
//
// While no server answers, Acknowledge, Nack, Return and Reply of a message repeat their call, for a minute at most.
// All other methods return the error.
type ServerMailbox struct {
	cfg    ServerMailboxConfig
	closed context.Context // done after Close
	close  context.CancelFunc

	mu         sync.Mutex
	unanswered []string // ids of requests that may have been granted messages; each Receive adds at most one
}

// NewServerMailbox checks cfg and returns a mailbox. It does not connect.
func NewServerMailbox(cfg ServerMailboxConfig) (*ServerMailbox, error) {
	if cfg.Client == nil || cfg.Type == "" {
		return nil, errors.New("a mailbox on a server needs Client and Type")
	}
	if cfg.ID == "" {
		cfg.ID = randomID()
	}
	b := &ServerMailbox{cfg: cfg}
	b.closed, b.close = context.WithCancel(context.Background())
	return b, nil
}

// Send implements Mailbox.
func (b *ServerMailbox) Send(ctx context.Context, body []byte, replyTo Mailbox) (id string, err error) {
	var back string
	if replyTo != nil {
		to, same := replyTo.(*ServerMailbox)
		if !same {
			return "", fmt.Errorf("replies from a mailbox on a server cannot go to a %T", replyTo)
		}
		back = to.cfg.Type
	}
	if b.closed.Err() != nil {
		return "", ErrMailboxClosed
	}
	return b.submit(ctx, newKey(), b.cfg.Type, body, back)
}

// newKey returns the idempotency key of a new message.
func newKey() string { return "message:" + rand.Text() }

// submit stores a message as a job. Its idempotency key makes the call safe to repeat.
func (b *ServerMailbox) submit(ctx context.Context, key, jobType string, body []byte, replyTo string) (string, error) {
	payloads, err := seal(body, replyTo)
	if err != nil {
		return "", err
	}
	s := lessor.Submission{
		Type: &jobType, IdempotencyKey: &key,
		MaxAttempts: new(int64(MaxDeliveries)),
		Backoff:     &lessor.BackoffAsk{FirstMS: new(int64(0)), MaxMS: new(int64(0))}, // overdue = visible at once
	}
	if b.cfg.Tenant != "" {
		s.TenantID = &b.cfg.Tenant
	}
	var job lessor.Submitted
	err = tryEach(payloads, func(payload json.RawMessage) (err error) {
		s.Payload = payload
		job, err = b.cfg.Client.SubmitJob(ctx, s)
		return err
	})
	if lessor.CodeOf(err) == lessor.CodePayloadTooLarge {
		return "", fmt.Errorf("a body of %d bytes: %w: %w", len(body), ErrOutOfBounds, err)
	}
	if err != nil {
		return "", fmt.Errorf("send message: %w", err)
	}
	return job.ID.String(), nil
}

// Receive implements Mailbox.
func (b *ServerMailbox) Receive(
	ctx context.Context, maxMessages int, visibility, wait time.Duration,
) ([]Message, error) {
	if err := CheckReceive(maxMessages, visibility, wait); err != nil {
		return nil, err
	}
	until := time.Now().Add(wait)
	for {
		grants, denial, err := b.request(ctx, maxMessages, visibility, max(0, time.Until(until)))
		if err != nil {
			return nil, err
		}
		messages, err := b.openAll(ctx, grants)
		left := time.Until(until)
		if len(messages) > 0 || err != nil || left <= 0 {
			return messages, err
		}
		if denial != nil {
			b.pause(ctx, min(left, time.Duration(denial.RetryAfterMS)*time.Millisecond))
		}
	}
}

// request requests leases once. If ctx or the mailbox ends meanwhile, it gives back the leases that were granted. It
// repeats a request that was not answered, if there is one: the server says what that was granted.
func (b *ServerMailbox) request(
	ctx context.Context, most int, visibility, wait time.Duration,
) ([]lessor.Grant, *lessor.Denial, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.closed, cancel)()
	id, repeated := b.requestID()
	grants, denial, err := b.cfg.Client.Request(asking, lessor.LeaseRequest{
		WorkerID: &b.cfg.ID, Types: []string{b.cfg.Type}, MaxLeases: new(int64(most)), RequestID: &id,
		WaitMS: new(wait.Milliseconds()), TTLMS: new(ttlOf(visibility)),
	})
	if err == nil && asking.Err() == nil && repeated {
		grants, err = b.claim(asking, grants, most, visibility)
	}
	if err == nil && asking.Err() == nil {
		return grants, denial, nil
	}
	unanswered := transient(err)
	if asking.Err() != nil {
		unanswered = !b.giveBack(ctx, id)
		err = ErrMailboxClosed
	}
	if unanswered {
		b.mu.Lock()
		b.unanswered = append(b.unanswered, id)
		b.mu.Unlock()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, nil, fmt.Errorf("receive messages: %w", err)
}

// requestID returns the id of a request that was not answered, or a new one.
func (b *ServerMailbox) requestID() (id string, repeated bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.unanswered) == 0 {
		return rand.Text(), false
	}
	id, b.unanswered = b.unanswered[0], b.unanswered[1:]
	return id, true
}

// claim makes what an earlier request was granted fit a Receive: there may be more messages, and time has passed.
func (b *ServerMailbox) claim(
	ctx context.Context, grants []lessor.Grant, most int, visibility time.Duration,
) (claimed []lessor.Grant, err error) {
	for i, g := range grants {
		if len(claimed) == most {
			b.giveAllBack(ctx, grants[i:])
			break
		}
		err := b.open(g).Extend(ctx, visibility)
		switch {
		case err == nil:
			claimed = append(claimed, g)
		case !errors.Is(err, ErrReceiptExpired):
			return nil, err
		}
	}
	return claimed, nil
}

// giveBackTimeout bounds the calls of a receiver that was stopped.
const giveBackTimeout = time.Second

// giveBack gives back what a request was granted, and reports whether the server has said what that is.
func (b *ServerMailbox) giveBack(ctx context.Context, requestID string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	grants, err := grantsOf(ctx, b.cfg.Client, b.cfg.ID, requestID)
	b.giveAllBack(ctx, grants)
	return err == nil
}

// giveAllBack gives messages back. After an error their visibility ends.
func (b *ServerMailbox) giveAllBack(ctx context.Context, grants []lessor.Grant) {
	for _, g := range grants {
		_ = b.open(g).Return(ctx)
	}
}

// ttlOf returns a visibility as the ttl of a lease in milliseconds.
func ttlOf(visibility time.Duration) int64 { return max(visibility, minTTL).Milliseconds() }

// pause waits for d, or until ctx or the mailbox ends.
func (b *ServerMailbox) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-b.closed.Done():
	}
}

// makeDeadTimeout bounds how long the other messages of a Receive wait until those that were delivered too often are
// dead letters.
const makeDeadTimeout = 5 * time.Second

// openAll opens what was granted. It makes dead letters of what was delivered too often: the server counts attempts and
// interruptions separately, so it does not enforce MaxDeliveries. If that fails, the next delivery tries again; the
// error is returned only if it costs no other message.
func (b *ServerMailbox) openAll(ctx context.Context, grants []lessor.Grant) (messages []Message, err error) {
	ctx, cancel := context.WithTimeout(ctx, makeDeadTimeout)
	defer cancel()
	for _, g := range grants {
		m := b.open(g)
		if m.deliveries <= MaxDeliveries {
			messages = append(messages, m)
		} else if failure := m.makeDead(ctx); !errors.Is(failure, ErrReceiptExpired) {
			err = errors.Join(err, failure)
		}
	}
	if len(messages) > 0 {
		return messages, nil
	}
	return nil, err
}

// DeadLetters implements Mailbox. It reads the list of all jobs of the type that ended without success.
func (b *ServerMailbox) DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error) {
	var dead []lessor.Job
	for _, state := range []lessor.State{lessor.Failed, lessor.Expired} {
		for job, err := range b.cfg.Client.AllJobs(ctx, lessor.JobFilter{State: state, Type: b.cfg.Type, Limit: 1000}) {
			if err != nil {
				return nil, fmt.Errorf("list dead letters: %w", err)
			}
			if job.RetryAt.IsZero() {
				dead = append(dead, job)
			}
		}
	}
	// Ids rise with time.
	slices.SortFunc(dead, func(x, y lessor.Job) int { return bytes.Compare(x.ID.UUID[:], y.ID.UUID[:]) })
	letters := make([]DeadLetter, 0, min(len(dead), max(0, limit)))
	for _, job := range dead[:cap(letters)] {
		body, _ := unseal(job.Payload)
		letters = append(letters, DeadLetter{
			ID: job.ID.String(), Body: body, Deliveries: min(job.Attempt+job.Interruptions, MaxDeliveries),
		})
	}
	return letters, nil
}

// Close implements Mailbox.
func (b *ServerMailbox) Close() error {
	b.close()
	return nil
}

func (b *ServerMailbox) open(g lessor.Grant) *serverMessage {
	m := &serverMessage{
		box: b, grant: g, deliveries: g.Job.Attempt + g.Job.Interruptions, results: []json.RawMessage{nil},
	}
	m.journal = newJournal(b.cfg.Client, &m.grant, m.appendEntry)
	m.body, m.replyTo = unseal(g.Job.Payload)
	return m
}
