package memory

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// LastEntries implements scheduler.Tx.
func (t *tx) LastEntries(_ context.Context, jobs []lessor.JobID) (map[lessor.JobID]rules.Entry, error) {
	last := make(map[lessor.JobID]rules.Entry)
	if len(jobs) == 0 {
		return last, t.err
	}
	s, err := t.read("read last entries")
	if err != nil {
		return nil, err
	}
	for _, id := range jobs {
		for k, e := range s.journal.back(key{id: id.UUID}.last()) {
			if k.id == id.UUID {
				e.Data = nil
				last[id] = e
			}
			break
		}
	}
	return last, nil
}

// KnownEntries implements scheduler.Tx.
func (t *tx) KnownEntries(
	_ context.Context, refs []scheduler.EntryRef,
) (map[scheduler.EntryRef]rules.Entry, error) {
	known := make(map[scheduler.EntryRef]rules.Entry)
	if len(refs) == 0 {
		return known, t.err
	}
	s, err := t.read("read entries by key")
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		for _, e := range s.journal.under("", ref.Job.UUID) {
			if e.Key == ref.Key {
				known[ref] = e
			}
		}
	}
	return known, nil
}

// AppendEntries implements scheduler.Tx.
func (t *tx) AppendEntries(_ context.Context, entries []rules.Entry) error {
	if len(entries) == 0 {
		return t.err
	}
	return t.do("append entries", func() error {
		for _, e := range entries {
			if err := t.acquire(lock{"job", key{id: e.Job.UUID}}); err != nil {
				return err
			}
			for _, was := range t.state.journal.under("", e.Job.UUID) {
				if was.N == e.N || was.Key == e.Key {
					return fmt.Errorf("%w: job %s has the entry %d, %q", scheduler.ErrBadCall, e.Job, was.N, was.Key)
				}
			}
			t.write(func(s *tables) { s.journal.put(key{id: e.Job.UUID, n: int64(e.N)}, e) })
		}
		return nil
	})
}

// Entries implements scheduler.View.
func (v *view) Entries(_ context.Context, id lessor.JobID, after, limit int) ([]rules.Entry, error) {
	s, err := v.read("read a journal")
	if err != nil {
		return nil, err
	}
	return page(s.journal.under("", id.UUID), limit, func(e rules.Entry) bool { return e.N > after }), nil
}
