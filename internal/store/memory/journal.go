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
	s := t.read("read last entries")
	for _, id := range jobs {
		for k, e := range s.journal.back(key{id: id.UUID}.last()) {
			if k.id == id.UUID {
				e.Data = nil
				last[id] = e
			}
			break
		}
	}
	return last, t.err
}

// KnownEntries implements scheduler.Tx.
func (t *tx) KnownEntries(
	_ context.Context, refs []scheduler.EntryRef,
) (map[scheduler.EntryRef]rules.Entry, error) {
	known := make(map[scheduler.EntryRef]rules.Entry)
	s := t.read("read entries by key")
	for _, ref := range refs {
		for _, e := range s.journal.under("", ref.Job.UUID) {
			if e.Key == ref.Key {
				known[ref] = e
			}
		}
	}
	return known, t.err
}

// AppendEntries implements scheduler.Tx.
func (t *tx) AppendEntries(_ context.Context, entries []rules.Entry) error {
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
			e.Seq = 0 // entries are read without it
			t.write(func(s *tables) { s.journal.put(key{id: e.Job.UUID, n: int64(e.N)}, e) })
		}
		return nil
	})
}

// CopyJournal implements scheduler.Tx.
func (t *tx) CopyJournal(ctx context.Context, from lessor.JobID, to *rules.Spec) (entries int, err error) {
	var copies []rules.Entry
	for _, e := range t.read("copy a journal").journal.under("", from.UUID) {
		e.Job = to.ID
		copies = append(copies, e)
	}
	return len(copies), t.AppendEntries(ctx, copies)
}

// Entries implements scheduler.View.
func (v *view) Entries(_ context.Context, id lessor.JobID, after, limit int) ([]rules.Entry, error) {
	s := v.read("read a journal")
	return page(s.journal.under("", id.UUID), limit, func(e rules.Entry) bool { return e.N > after }), v.err
}
