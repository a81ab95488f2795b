package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"lessor"
	"lessor/client"
)

// ServerMaxBody is how many bytes a message may have on a server with the default limit of 256 KiB a job: what is not text
// travels as base64, and 2 KiB are for what is around it.
const ServerMaxBody = (256<<10 - 2<<10) / 4 * 3

// ServerMailboxConfig says which jobs are the messages of a ServerMailbox.
type ServerMailboxConfig struct {
	Client *client.Client
	// Type is the mailbox's name: its messages are the jobs of this type. Nobody else may handle it.
	Type string
	// ID names the receiver in the server's lists and records. Empty means one of its own.
	ID string
	// Tenant is whose the messages are that are sent; empty = nobody's in particular.
	Tenant string
}

// ServerMailbox is a mailbox on a Lessor server: a message is a job, a delivery is a lease, whose ttl is the visibility (at least
// 100 ms), and a dead letter is a job that failed for good. Replies also become the job's result. Listing dead letters needs a
// token that may read jobs.
type ServerMailbox struct {
	cfg    ServerMailboxConfig
	closed context.Context // done after Close
	close  context.CancelFunc
}

// NewServerMailbox checks cfg and returns a mailbox. It does not connect.
func NewServerMailbox(cfg ServerMailboxConfig) (*ServerMailbox, error) {
	if cfg.Client == nil || cfg.Type == "" {
		return nil, errors.New("a mailbox on a server needs Client and Type")
	}
	if cfg.ID == "" {
		cfg.ID = ownID()
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
	return b.submit(ctx, b.cfg.Type, body, back)
}

// submit stores a message of a type, once: repetitions carry the same key.
func (b *ServerMailbox) submit(ctx context.Context, jobType string, body []byte, replyTo string) (string, error) {
	payload, err := seal(body, replyTo)
	if err != nil {
		return "", err
	}
	s := lessor.Submission{
		Type: &jobType, Payload: payload, IdempotencyKey: new("message:" + rand.Text()), MaxAttempts: new(int64(MaxDeliveries)),
		Backoff: &lessor.BackoffAsk{FirstMS: new(int64(0)), MaxMS: new(int64(0))}, // what is overdue is seen again at once
	}
	if b.cfg.Tenant != "" {
		s.TenantID = &b.cfg.Tenant
	}
	job, err := b.cfg.Client.SubmitJob(ctx, s)
	if lessor.CodeOf(err) == lessor.CodePayloadTooLarge {
		return "", fmt.Errorf("a body of %d bytes: %w: %w", len(body), ErrOutOfBounds, err)
	}
	if err != nil {
		return "", fmt.Errorf("send message: %w", err)
	}
	return job.ID.String(), nil
}

// Receive implements Mailbox.
func (b *ServerMailbox) Receive(ctx context.Context, maxMessages int, visibility, wait time.Duration) ([]Message, error) {
	if err := CheckReceive(maxMessages, visibility, wait); err != nil {
		return nil, err
	}
	until := time.Now().Add(wait)
	for {
		grants, denial, err := b.request(ctx, maxMessages, visibility, max(0, time.Until(until)))
		if err != nil {
			return nil, err
		}
		var messages []Message
		for _, g := range grants {
			m := b.open(g)
			if m.deliveries <= MaxDeliveries {
				messages = append(messages, m)
			} else if err := m.bury(ctx); err != nil { // the server counts attempts and interruptions apart, and could not
				return messages, err
			}
		}
		left := time.Until(until)
		if len(messages) > 0 || left <= 0 {
			return messages, nil
		}
		if denial != nil && !pauseEither(ctx, b.closed, min(left, time.Duration(denial.RetryAfterMS)*time.Millisecond)) {
			continue // which finds out who ended it
		}
	}
}

// request asks for leases once. What was granted to a request that is given up is given back.
func (b *ServerMailbox) request(ctx context.Context, most int, visibility, wait time.Duration) ([]lessor.Grant, *lessor.Denial, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.closed, cancel)()
	id := rand.Text()
	grants, denial, err := b.cfg.Client.Request(asking, lessor.LeaseRequest{
		WorkerID: &b.cfg.ID, Types: []string{b.cfg.Type}, MaxLeases: new(int64(most)), RequestID: &id,
		WaitMS: new(wait.Milliseconds()), TTLMS: new(ttlOf(visibility)),
	})
	if err == nil && asking.Err() == nil {
		return grants, denial, nil
	}
	if asking.Err() != nil {
		b.giveBack(ctx, id)
		err = ErrMailboxClosed
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, nil, fmt.Errorf("receive messages: %w", err)
}

// giveBackTimeout bounds what a receiver who was told to stop still does.
const giveBackTimeout = time.Second

func (b *ServerMailbox) giveBack(ctx context.Context, requestID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	grants, _ := recall(ctx, b.cfg.Client, b.cfg.ID, requestID) // what stays becomes visible by itself
	for _, g := range grants {
		_ = b.open(g).Return(ctx)
	}
}

// ttlOf is a visibility as the ttl of a lease.
func ttlOf(visibility time.Duration) int64 { return max(visibility, minTTL).Milliseconds() }

// pauseEither waits for d and reports whether neither context ended it.
func pauseEither(a, b context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.Done():
	case <-b.Done():
	}
	return false
}

// DeadLetters implements Mailbox. It reads the whole list of the type's jobs that ended without success.
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
	slices.SortFunc(dead, func(x, y lessor.Job) int { return cmp.Compare(x.ID.String(), y.ID.String()) }) // ids rise with time
	letters := make([]DeadLetter, 0, min(len(dead), max(0, limit)))
	for _, job := range dead[:cap(letters)] {
		body, _ := unseal(job.Payload) // a job that is no message is a dead letter without a body
		letters = append(letters, DeadLetter{ID: job.ID.String(), Body: body, Deliveries: min(job.Attempt+job.Interruptions, MaxDeliveries)})
	}
	return letters, nil
}

// Close implements Mailbox.
func (b *ServerMailbox) Close() error {
	b.close()
	return nil
}

func (b *ServerMailbox) open(g lessor.Grant) *serverMessage {
	m := &serverMessage{box: b, grant: g, deliveries: g.Job.Attempt + g.Job.Interruptions}
	m.body, m.replyTo = unseal(g.Job.Payload)
	return m
}
