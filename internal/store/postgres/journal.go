package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	entryColumns  = row.Columns(entryRow)
	appendEntries = insertInto("journal", entryRow)
	readEntries   = wire.SQL("select " + entryColumns + " from journal where job = $1::uuid and n > $2::bigint" +
		" order by n limit $3::bigint")
	readKnownEntries = wire.SQL("select " + row.Of("j", entryColumns) + " from (" + wire.Unnest("ut", "job, key") +
		") u join journal j on " + wire.At("j.job", "u.job") + " and j.key = u.key")
	// The data of the last entries is not read.
	readLastEntries = wire.SQL("select j.job, j.n, j.key, j.kind, j.at, j.fence, j.bytes, null::bytea from" +
		" (" + wire.Unnest("u", "job") + ") u cross join lateral" +
		" (select * from journal where job = u.job order by n desc limit 1) j")
	copyEntries = wire.SQL("with copied as (insert into journal (" + entryColumns + ") select $2::uuid, " +
		row.Columns(row.Entry) + " from journal where job = $1::uuid returning 1) select count(*) from copied")
)

func entryRow(c *row.Codec, e *rules.Entry) {
	row.ID(c, "job", &e.Job.UUID)
	row.Entry(c, e)
}

// LastEntries implements scheduler.Tx.
func (t *tx) LastEntries(_ context.Context, jobs []lessor.JobID) (map[lessor.JobID]rules.Entry, error) {
	last := make(map[lessor.JobID]rules.Entry)
	if len(jobs) == 0 || t.err != nil {
		return last, t.err
	}
	return last, t.readEntries("read last entries", readLastEntries, func(e rules.Entry) { last[e.Job] = e },
		wire.IDs(jobs))
}

// KnownEntries implements scheduler.Tx.
func (t *tx) KnownEntries(
	_ context.Context, refs []scheduler.EntryRef,
) (map[scheduler.EntryRef]rules.Entry, error) {
	known := make(map[scheduler.EntryRef]rules.Entry)
	if len(refs) == 0 || t.err != nil {
		return known, t.err
	}
	r := t.scratch.Reset()
	for _, ref := range refs {
		r.Next()
		r.ID(ref.Job.UUID)
		r.Text(ref.Key)
	}
	return known, t.readEntries("read entries by key", readKnownEntries, func(e rules.Entry) {
		known[scheduler.EntryRef{Job: e.Job, Key: e.Key}] = e
	}, r.Params()...)
}

func (v *view) readEntries(verb string, s *wire.Statement, visit func(rules.Entry), params ...[]byte) error {
	return v.query(verb, s, func(r *wire.Row) error {
		var e rules.Entry
		c := decode(r)
		entryRow(c, &e)
		visit(e)
		return c.Err
	}, params...)
}

// AppendEntries implements scheduler.Tx.
func (t *tx) AppendEntries(_ context.Context, entries []rules.Entry) error {
	return save(t, "append entries", appendEntries, entries, entryRow)
}

// CopyJournal implements scheduler.Tx.
func (t *tx) CopyJournal(_ context.Context, from lessor.JobID, to *rules.Spec) (entries int, err error) {
	err = t.query("copy a journal", copyEntries, func(r *wire.Row) error {
		entries = int(r.Int())
		return nil
	}, wire.ID(from.UUID), wire.ID(to.ID.UUID))
	return entries, err
}

// Entries implements scheduler.View.
func (v *view) Entries(_ context.Context, id lessor.JobID, after, limit int) (entries []rules.Entry, err error) {
	err = v.query("read a journal", readEntries, collect(&entries, entryRow), wire.ID(id.UUID),
		wire.Int8(int64(after)), wire.Limit(limit))
	return entries, err
}
