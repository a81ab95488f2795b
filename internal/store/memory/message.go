package memory

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// letter is a message. One that was seen is kept for its key.
type letter struct {
	rules.Message
	seen bool
}

// SaveMessages implements scheduler.Tx.
func (t *tx) SaveMessages(_ context.Context, ms []rules.Message) error {
	if len(ms) == 0 {
		return t.err
	}
	return t.do("save messages", func() error {
		for _, m := range ms {
			t.store.origin.fence = max(t.store.origin.fence, m.Seq)
			k := key{id: m.Job.UUID, n: m.Seq}
			if err := t.acquire(lock{"message", k}); err != nil {
				return err
			}
			for _, was := range t.state.messages.under("", m.Job.UUID) {
				if was.Seq == m.Seq || m.Key != "" && was.Key == m.Key {
					return fmt.Errorf("%w: job %s has a message %d, %q", scheduler.ErrBadCall, m.Job, was.Seq, was.Key)
				}
			}
			t.write(func(s *tables) { s.messages.put(k, letter{Message: m}) })
		}
		return nil
	})
}

// DropMessages implements scheduler.Tx.
func (t *tx) DropMessages(_ context.Context, all []scheduler.Seen) error {
	if len(all) == 0 {
		return t.err
	}
	return t.do("drop messages", func() error {
		for _, seen := range all {
			t.write(func(s *tables) {
				for k, m := range s.messages.under("", seen.Job.UUID) {
					switch {
					case k.n > seen.UpTo:
					case m.Key == "" || k.n <= seen.Keyless:
						s.messages.drop(k)
					default:
						m.seen = true
						s.messages.put(k, m)
					}
				}
			})
		}
		return nil
	})
}

// KeyedMessage implements scheduler.Tx.
func (t *tx) KeyedMessage(_ context.Context, id lessor.JobID, key string) (*rules.Message, error) {
	for _, m := range t.read("read a message by its key").messages.under("", id.UUID) {
		if m.Key == key {
			return &m.Message, t.err
		}
	}
	return nil, t.err
}

// Messages implements scheduler.View.
func (v *view) Messages(
	_ context.Context, ids []lessor.JobID, limit int,
) (map[lessor.JobID][]lessor.Message, error) {
	s := v.read("read messages")
	all := make(map[lessor.JobID][]lessor.Message, len(ids))
	for _, id := range ids {
		all[id] = nil // it may be named twice
		for _, m := range s.messages.under("", id.UUID) {
			if len(all[id]) >= limit {
				break
			}
			if !m.seen {
				all[id] = append(all[id], m.Message.Message)
			}
		}
	}
	return all, v.err
}

// EachMessaged implements scheduler.View.
func (v *view) EachMessaged(_ context.Context, fn func(lessor.JobID, int64) error) error {
	s := v.read("read jobs with messages")
	var last key
	for k, m := range s.messages.all() {
		if m.seen {
			continue
		}
		if last.n != 0 && last.id != k.id {
			if err := fn(lessor.JobID{UUID: last.id}, last.n); err != nil {
				return err
			}
		}
		last = k
	}
	if last.n == 0 {
		return v.err
	}
	return fn(lessor.JobID{UUID: last.id}, last.n)
}
