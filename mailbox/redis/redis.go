package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"lessor/worker"
)

// The pauses between the checks of a waiting receiver, shorter after a recent message. Blocking commands of Redis are
// not used, because they do not end with their context.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Config configures a Mailbox. Client and Name are required.
type Config struct {
	// Client is not closed by the mailbox.
	Client redis.UniversalClient
	// Name has at most 200 letters, digits, dots, hyphens and underscores.
	Name string
	// MaxLength is how many messages the mailbox holds, dead letters included. Send checks it. The default is
	// worker.DefaultMaxLength.
	MaxLength int
}

// Mailbox is a connection to a mailbox on Redis.
type Mailbox struct {
	cfg   Config
	once  sync.Once
	ended chan struct{}
}

var goodName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,200}$`)

// New checks cfg and returns a Mailbox. It does not connect.
func New(cfg Config) (*Mailbox, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("redis: no client")
	case !goodName.MatchString(cfg.Name):
		return nil, fmt.Errorf("redis: %q is not a name of letters, digits, dots, hyphens and underscores", cfg.Name)
	}
	if cfg.MaxLength <= 0 {
		cfg.MaxLength = worker.DefaultMaxLength
	}
	return &Mailbox{cfg: cfg, ended: make(chan struct{})}, nil
}

// keys returns the keys of the mailbox in the order in which the scripts use them, then those of one call.
func (b *Mailbox) keys(call ...string) []string {
	all := append([]string{"due", "last", "dead", "body", "count", "reply", "held", "sent"}, call...)
	for i, k := range all {
		all[i] = "lessor:{" + b.cfg.Name + "}:" + k
	}
	return all
}

// run runs a script on keys. The client repeats it with the same arguments if the answer is lost.
func (b *Mailbox) run(ctx context.Context, s *redis.Script, keys []string, args ...any) (any, error) {
	answer, err := s.Run(ctx, b.cfg.Client, keys, args...).Result()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return answer, nil
}

func (b *Mailbox) closed() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

// Send implements worker.Mailbox.
func (b *Mailbox) Send(ctx context.Context, body []byte, replyTo worker.Mailbox) (id string, err error) {
	if err := worker.CheckBody(body); err != nil {
		return "", err
	}
	name := ""
	if replyTo != nil {
		other, same := replyTo.(*Mailbox)
		if !same {
			return "", fmt.Errorf("replies from a mailbox on Redis cannot go to a %T", replyTo)
		}
		name = other.cfg.Name
	}
	if b.closed() {
		return "", worker.ErrMailboxClosed
	}
	return b.put(ctx, body, name)
}

func (b *Mailbox) put(ctx context.Context, body []byte, replyTo string) (id string, err error) {
	id = rand.Text()
	answer, err := b.run(ctx, sendScript, b.keys(), id, body, replyTo, b.cfg.MaxLength)
	if err != nil {
		return "", err
	}
	if answer != int64(1) {
		return "", worker.ErrMailboxFull
	}
	return id, nil
}

// Receive implements worker.Mailbox.
func (b *Mailbox) Receive(
	ctx context.Context, maxMessages int, visibility, wait time.Duration,
) ([]worker.Message, error) {
	if err := worker.CheckReceive(maxMessages, visibility, wait); err != nil {
		return nil, err
	}
	until := time.Now().Add(wait)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if b.closed() {
			return nil, worker.ErrMailboxClosed
		}
		messages, err := b.take(ctx, maxMessages, visibility)
		left := time.Until(until)
		if err != nil || len(messages) > 0 || left <= 0 {
			return messages, err
		}
		timer := time.NewTimer(min(left, pause))
		select {
		case <-timer.C:
		case <-b.ended:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// takeTimeout bounds how long a stopped receiver waits for the messages that it may have been given.
const takeTimeout = 5 * time.Second

// take delivers waiting messages. The end of ctx does not interrupt it, because the messages in a lost answer would
// count as delivered.
func (b *Mailbox) take(ctx context.Context, maxMessages int, visibility time.Duration) ([]worker.Message, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTimeout)
	defer cancel()
	id := rand.Text()
	answer, err := b.run(call, receiveScript, b.keys("given:"+id), maxMessages, visibility.Microseconds(), id)
	if err != nil {
		return nil, err
	}
	return b.read(answer)
}

// DeadLetters implements worker.Mailbox.
func (b *Mailbox) DeadLetters(ctx context.Context, limit int) ([]worker.DeadLetter, error) {
	if limit <= 0 {
		return nil, nil
	}
	answer, err := b.run(ctx, deadScript, b.keys(), limit)
	if err != nil {
		return nil, err
	}
	rows, err := rowsOf(answer, 3)
	if err != nil {
		return nil, err
	}
	letters := make([]worker.DeadLetter, len(rows))
	for i, r := range rows {
		letters[i] = worker.DeadLetter{ID: r[0], Body: []byte(r[1])}
		if letters[i].Deliveries, err = number(r[2]); err != nil {
			return nil, err
		}
	}
	return letters, nil
}

// Close implements worker.Mailbox. The messages stay on the server.
func (b *Mailbox) Close() error {
	b.once.Do(func() { close(b.ended) })
	return nil
}
