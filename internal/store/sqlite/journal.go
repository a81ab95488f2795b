package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

var (
	entryColumns = row.Columns(row.Entry)
	selectEntry  = "select " + entryColumns + " from journal where job = ? and "
	readEntries  = selectEntry + "n > +? order by n limit +?"
	readEntry    = selectEntry + "key = ?"
	// The data of the last entry is not read.
	readLastEntry = "select job, n, key, kind, at, fence, bytes, null from journal" +
		" where job = ? order by n desc limit 1"
)

// LastEntries implements scheduler.Tx.
func (t *tx) LastEntries(_ context.Context, jobs []lessor.JobID) (map[lessor.JobID]rules.Entry, error) {
	last := make(map[lessor.JobID]rules.Entry)
	return last, t.do("read last entries", func() error {
		for _, id := range jobs {
			e, err := find(t.conn, readLastEntry, func(a *args) { a.ID(id.UUID) }, row.Entry)
			if err != nil {
				return err
			}
			if e != nil {
				last[id] = *e
			}
		}
		return nil
	})
}

// KnownEntries implements scheduler.Tx.
func (t *tx) KnownEntries(
	_ context.Context, refs []scheduler.EntryRef,
) (map[scheduler.EntryRef]rules.Entry, error) {
	known := make(map[scheduler.EntryRef]rules.Entry)
	return known, t.do("read entries by key", func() error {
		for _, ref := range refs {
			e, err := find(t.conn, readEntry, func(a *args) {
				a.ID(ref.Job.UUID)
				a.Text(ref.Key)
			}, row.Entry)
			if err != nil {
				return err
			}
			if e != nil {
				known[ref] = *e
			}
		}
		return nil
	})
}

// AppendEntries implements scheduler.Tx.
func (t *tx) AppendEntries(_ context.Context, entries []rules.Entry) error {
	return insert(t, "append entries", &t.w.journal, entries, row.Entry)
}

// Entries implements scheduler.View.
func (v *view) Entries(ctx context.Context, id lessor.JobID, after, limit int) ([]rules.Entry, error) {
	entries, err := collect(v.conn, readEntries, func(a *args) {
		a.ID(id.UUID)
		a.Int(int64(after))
		a.limit(limit)
	}, row.Entry)
	return entries, readFault(ctx, "read a journal", err)
}
