package storetest

import (
	"fmt"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

var journalSize = rules.JournalSize{Entries: 5, Bytes: 1 << 40}

// entry is the n-th entry of a job's journal, as it is read.
func entry(id lessor.JobID, n int) rules.Entry {
	return rules.Entry{
		Job: id, Size: rules.JournalSize{Entries: n, Bytes: int64(100 * n)}, JournalEntry: lessor.JournalEntry{
			N: n, Key: fmt.Sprintf("key-%d", n), Kind: "step", Data: []byte(fmt.Sprintf(`{"n":%d.0}`, n)), At: 7,
			Fence: 9,
		},
	}
}

func (b *bed) journal(id lessor.JobID, after, limit int) (entries []rules.Entry) {
	b.view(func(v scheduler.View) (err error) {
		entries, err = v.Entries(b.Context(), id, after, limit)
		return err
	})
	return entries
}

// newEntry is the n-th entry of a job's journal, as it is appended.
func newEntry(s *rules.Spec, n int) rules.Entry {
	e := entry(s.ID, n)
	e.Seq = s.Seq
	return e
}

func (b *bed) appendEntries(entries ...rules.Entry) error {
	return b.Update(b.Context(), func(tx scheduler.Tx) error { return tx.AppendEntries(b.Context(), entries) })
}

// journalsAreKept appends to two journals, and reads them by number, by key and from their ends.
func journalsAreKept(b *bed) {
	first, second, none := b.queued(), b.queued(), b.queued().ID
	one, two := first.ID, second.ID
	b.must(b.appendEntries(newEntry(first, 1), newEntry(second, 1), newEntry(first, 2)))
	b.must(b.appendEntries(newEntry(first, 3)))
	check := func() {
		b.same("the journal", b.journal(one, 0, 10), []rules.Entry{entry(one, 1), entry(one, 2), entry(one, 3)})
		b.same("a page", b.journal(one, 1, 1), []rules.Entry{entry(one, 2)})
		b.same("behind the end", b.journal(one, 3, 10), nil)
		b.same("a job without a journal", b.journal(none, 0, 10), nil)
		b.update(func(tx scheduler.Tx) error {
			last, err := tx.LastEntries(b.Context(), []lessor.JobID{one, two, none})
			if err != nil {
				return err
			}
			want := map[lessor.JobID]rules.Entry{one: entry(one, 3), two: entry(two, 1)}
			for id, e := range want {
				e.Data = nil
				want[id] = e
			}
			b.same("last entries", last, want)
			known, err := tx.KnownEntries(b.Context(), []scheduler.EntryRef{
				{Job: one, Key: "key-2"}, {Job: two, Key: "key-2"}, {Job: two, Key: "key-1"},
			})
			b.same("known entries", known, map[scheduler.EntryRef]rules.Entry{
				{Job: one, Key: "key-2"}: entry(one, 2), {Job: two, Key: "key-1"}: entry(two, 1),
			})
			return err
		})
	}
	check()
	number, key := newEntry(first, 3), newEntry(first, 4)
	number.Key, key.Key = "new", "key-1"
	b.wants(b.appendEntries(newEntry(second, 2), number), scheduler.ErrBadCall)
	b.wants(b.appendEntries(newEntry(second, 2), key), scheduler.ErrBadCall)
	b.reopen()
	check()
}

// journalsAreCopied gives a job the journal of another, which stays as it is.
func journalsAreCopied(b *bed) {
	from, to, empty := b.queued(), b.queued(), b.queued()
	b.must(b.appendEntries(newEntry(from, 1), newEntry(from, 2)))
	b.update(func(tx scheduler.Tx) error {
		n, err := tx.CopyJournal(b.Context(), from.ID, to)
		b.same("entries that were copied", n, 2)
		return err
	})
	b.must(b.appendEntries(newEntry(to, 3)))
	b.update(func(tx scheduler.Tx) error {
		n, err := tx.CopyJournal(b.Context(), empty.ID, empty)
		b.same("entries of an empty journal", n, 0)
		return err
	})
	b.reopen()
	b.same("the copy", b.journal(to.ID, 0, 10), []rules.Entry{entry(to.ID, 1), entry(to.ID, 2), entry(to.ID, 3)})
	b.same("the original", b.journal(from.ID, 0, 10), []rules.Entry{entry(from.ID, 1), entry(from.ID, 2)})
}
