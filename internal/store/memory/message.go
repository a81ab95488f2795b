package memory

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// SaveMessages implements scheduler.Tx.
func (t *tx) SaveMessages(_ context.Context, ms []rules.Message) error {
	if len(ms) == 0 {
		return t.err
	}
	return t.do("save messages", func() error {
		for _, m := range ms {
			k := key{id: m.Job.UUID, n: m.Seq}
			if err := t.acquire(lock{"message", k}); err != nil {
				return err
			}
			if t.state.messages.has(k) {
				return fmt.Errorf("%w: job %s has a message %d", scheduler.ErrBadCall, m.Job, m.Seq)
			}
			t.write(func(s *tables) { s.messages.put(k, m.Message) })
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
				for k := range s.messages.under("", seen.Job.UUID) {
					if k.n <= seen.UpTo {
						s.messages.drop(k)
					}
				}
			})
		}
		return nil
	})
}

// Messages implements scheduler.View.
func (v *view) Messages(
	_ context.Context, ids []lessor.JobID, limit int,
) (map[lessor.JobID][]lessor.Message, error) {
	s := v.read("read messages")
	all := make(map[lessor.JobID][]lessor.Message, len(ids))
	for _, id := range ids {
		for _, m := range s.messages.under("", id.UUID) {
			if len(all[id]) >= limit {
				break
			}
			all[id] = append(all[id], m)
		}
	}
	return all, v.err
}

// EachMessaged implements scheduler.View.
func (v *view) EachMessaged(_ context.Context, fn func(lessor.JobID, int64) error) error {
	s := v.read("read jobs with messages")
	var last key
	for k := range s.messages.all() {
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
