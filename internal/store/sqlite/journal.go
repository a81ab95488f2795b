package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

const ofJob = " from journal where job = (select seq from job where id = ?)"

var (
	entryColumns = row.Columns(row.Entry)
	readEntries  = "select " + entryColumns + ofJob + " and n > +? order by n limit +?"
	readEntry    = "select " + entryColumns + ofJob + " and key = ?"
	// The data of the last entry is not read.
	readLastEntry = "select n, key, kind, at, fence, bytes, null" + ofJob + " order by n desc limit 1"
	copyEntries   = "insert into journal (job, " + entryColumns + ") select ?, " + entryColumns + ofJob + " order by n"
)

// newEntry is a row of journal. It names its job by the seq: the two indexes are half as large as with the id, and
// SQLite splits their pages half as often.
func newEntry(c *row.Codec, e *rules.Entry) {
	row.Integer(c, "job", &e.Seq)
	row.Entry(c, e)
}

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
				e.Job = id
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
				e.Job = ref.Job
				known[ref] = *e
			}
		}
		return nil
	})
}

// AppendEntries implements scheduler.Tx.
func (t *tx) AppendEntries(_ context.Context, entries []rules.Entry) error {
	return insert(t, "append entries", &t.w.journal, entries, newEntry)
}

// CopyJournal implements scheduler.Tx.
func (t *tx) CopyJournal(_ context.Context, from lessor.JobID, to *rules.Spec) (entries int, err error) {
	err = t.runOnce("copy a journal", copyEntries, func(a *args) {
		a.Int(to.Seq)
		a.ID(from.UUID)
	})
	return t.conn.Changes(), err
}

// Entries implements scheduler.View.
func (v *view) Entries(ctx context.Context, id lessor.JobID, after, limit int) ([]rules.Entry, error) {
	entries, err := collect(v.conn, readEntries, func(a *args) {
		a.ID(id.UUID)
		a.Int(int64(after))
		a.limit(limit)
	}, row.Entry)
	for i := range entries {
		entries[i].Job = id
	}
	return entries, readFault(ctx, "read a journal", err)
}
