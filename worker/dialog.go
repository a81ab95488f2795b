package worker

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"lessor"
)

// Question is what a handler asks a person. With Choices, the answer is one of them.
type Question struct {
	Text    string        // up to 8 KiB
	Choices []string      // up to 20, of up to 200 characters
	Within  time.Duration // how long the job waits for the answer, up to a year; zero means 7 days
}

// ErrUnanswered means that nobody answered a question within its time.
var ErrUnanswered = errors.New("nobody answered the question in time")

// askError ends an attempt with a question.
type askError struct{ Question }

func (e *askError) Error() string { return "asks: " + e.Text }

// Ask asks a person and returns the answer. If the question was not asked before, it returns an error at once, which
// the handler must return: the job then waits without a lease, and Ask returns the answer, or ErrUnanswered, in the
// attempt that follows. The journal keeps both, so a job may ask one question after another; two questions with the
// same text are the same question. Neither question nor answer costs an attempt. A question that the server would
// refuse returns another error, and the handler may go on.
func (j *Job[T]) Ask(ctx context.Context, q Question) (string, error) {
	answer, err := Once(ctx, j, lessor.AnswerKey(q.Text), func() (*string, error) {
		if was := j.Question; was != nil && was.Text == q.Text {
			return was.Answer, nil
		}
		if err := lessor.CheckQuestion(q.Text, q.Choices, q.Within); err != nil {
			return nil, err
		}
		return nil, &askError{q}
	})
	switch {
	case err != nil:
		return "", err
	case answer == nil:
		return "", ErrUnanswered
	}
	return *answer, nil
}

// completion returns the end of an attempt that asks.
func (e *askError) completion(d lessor.Completion) lessor.Completion {
	d.Question = &lessor.Asking{Text: &e.Text, Choices: e.Choices}
	if e.Within > 0 {
		d.ExpiresInS = new(max(1, int64(e.Within/time.Second)))
	}
	return d
}

// inbox holds the messages to a job that its handler has not taken, at most as many as one answer has.
type inbox struct {
	mu        sync.Mutex
	queue     []lessor.Message
	last      int64 // received
	seen      int64 // by the handler
	confirmed int64 // to the server
	loops     int   // that wait for a message
	arrived   chan struct{}
}

// add adds the messages that are new.
func (b *inbox) add(ms []lessor.Message) {
	if len(ms) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ms = slices.DeleteFunc(slices.Clone(ms), func(m lessor.Message) bool { return m.Seq <= b.last })
	if len(ms) == 0 {
		return
	}
	b.queue, b.last = append(b.queue, ms...), ms[len(ms)-1].Seq
	poke(b.arrived)
}

// next takes the next message, if there is one.
func (b *inbox) next() (m lessor.Message, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok = len(b.queue) > 0; ok {
		m, b.queue = b.queue[0], b.queue[1:]
	}
	return m, ok
}

// unconfirmed returns the number of the last seen message if the server does not know it yet, else 0.
func (b *inbox) unconfirmed() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen > b.confirmed {
		return b.seen
	}
	return 0
}

// await waits for messages, or until ctx is done.
func (b *inbox) await(ctx context.Context) {
	b.count(1)
	defer b.count(-1)
	select {
	case <-b.arrived:
	case <-ctx.Done():
	}
}

func (b *inbox) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loops += n
}

// awaited reports whether the handler waits for a message.
func (b *inbox) awaited() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loops > 0
}

// Messages returns the messages that people send to the job, in order, and waits for more until ctx is done. A message
// counts as seen when the body of the loop has ended; one that was not seen when the attempt ended comes again, with
// the same Seq, in the next. Keep Seq with what the message did, or do it in Once, so that it is not done twice.
//
// Two loops over the messages of a job must not run at once: each message would reach only one of them, and one that
// the first still works on would count as seen when the second has ended its body.
func (j *Job[T]) Messages(ctx context.Context) iter.Seq[lessor.Message] {
	return func(yield func(lessor.Message) bool) {
		if j.lease == nil {
			return
		}
		b := &j.lease.inbox
		defer j.worker.confirmLast(ctx, j.lease) // the next heartbeats bring what is left again
		for ctx.Err() == nil {
			if m, ok := b.next(); ok {
				more := yield(m)
				b.mu.Lock()
				b.seen = m.Seq
				b.mu.Unlock()
				if !more {
					return
				}
			} else if seen := b.unconfirmed(); seen == 0 {
				b.await(ctx)
			} else if j.worker.confirm(ctx, j.lease, seen) != nil {
				return // the lease is lost, or ctx is done
			}
		}
	}
}

// confirmTime is how long a loop over messages that ends with its context may take to confirm the last one. It is short
// because the handler must return within the kill grace.
const confirmTime = 3 * time.Second

// confirmLast confirms what a loop over messages has seen when the loop ends, also after ctx is done, unless the lease
// is lost.
func (w *Worker) confirmLast(ctx context.Context, l *lease) {
	seen := l.inbox.unconfirmed()
	switch {
	case seen == 0 || errors.Is(context.Cause(l.ctx), ErrLeaseLost):
		return
	case ctx.Err() == nil && w.confirm(ctx, l, seen) == nil:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(confirmTime, w.cfg.KillGrace/2))
	defer cancel()
	_ = w.confirm(ctx, l, seen) // if it fails, the message comes again
}

// confirm tells the server which messages were seen. The answer may have more.
func (w *Worker) confirm(ctx context.Context, l *lease, seen int64) error {
	l.beats.Beat()
	body := lessor.Heartbeat{WorkerID: &w.cfg.ID, MessagesSeen: &seen}
	err := w.save(ctx, l, "confirm messages", func() (lessor.HeartbeatAnswer, error) {
		return w.cfg.Client.Heartbeat(ctx, l.id(), body)
	})
	if err == nil {
		l.inbox.mu.Lock()
		l.inbox.confirmed = max(l.inbox.confirmed, seen)
		l.inbox.mu.Unlock()
	}
	return err
}
