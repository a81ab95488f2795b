package postgres

import (
	"context"

	"lessor"
	"lessor/internal/store/postgres/wire"
)

// A page of ended jobs is locked, the oldest end first, and then removed table by table. Jobs that are locked already
// (by an operator's retry or another node's purge) are skipped.
var (
	lockEnded = wire.SQL("select d.job, d.seq, j.idempotency_key, n.tenant, d.ended_at from" +
		" (select job, seq, lane, ended_at from done where ended_at < $1::bigint order by ended_at, seq" +
		" limit $2::bigint" +
		" for update skip locked) d join job j on j.id = d.job join lane n on n.id = d.lane")
	purgeKeys = wire.SQL("delete from idempotency i using (" + wire.Unnest("utu", "tenant, key, job") + ") k" +
		" where " + wire.At("i.tenant", "k.tenant") + " and i.key = k.key and i.job = k.job")
	purges = []*wire.Statement{
		wire.SQL("delete from attempt where job = any($1::uuid[])"),
		wire.SQL("delete from note where job = any($1::uuid[])"),
		wire.SQL("delete from report where job = any($1::uuid[])"),
		wire.SQL("delete from journal where job = any($1::uuid[])"),
		wire.SQL("delete from output where job = any($1::uuid[])"),
		wire.SQL("delete from message where job = any($1::uuid[])"),
		wire.SQL("delete from job where id = any($1::uuid[])"),
	}
)

// endedPage is a page of jobs that ended, locked.
type endedPage struct {
	jobs []lessor.JobID
	seqs []int64
	keys []endedKey
	last lessor.Instant // when the last of them ended
}

type endedKey struct {
	tenant, job lessor.UUID
	key         string
}

func (t *tx) endedJobs(s *wire.Statement, params ...[]byte) (page endedPage, err error) {
	err = t.query("lock ended jobs", s, func(r *wire.Row) error {
		job := lessor.JobID{UUID: r.ID()}
		page.jobs, page.seqs = append(page.jobs, job), append(page.seqs, r.Int())
		key, tenant := r.Text(), r.ID()
		if key != "" {
			page.keys = append(page.keys, endedKey{tenant: tenant, job: job.UUID, key: key})
		}
		page.last = r.Instant()
		return nil
	}, params...)
	return page, err
}

// freeKeys lets the idempotency keys of jobs be used again.
func (t *tx) freeKeys(keys []endedKey) {
	if len(keys) == 0 {
		return
	}
	r := t.scratch.Reset()
	for _, k := range keys {
		r.Next()
		r.ID(k.tenant)
		r.Text(k.key)
		r.ID(k.job)
	}
	_ = t.write("free keys", wire.Step{Stmt: purgeKeys}, r.Params()...) // kept in t.err
}

func (t *tx) seqArray(seqs []int64) []byte {
	r := t.scratch.Reset()
	for _, seq := range seqs {
		r.Next()
		r.Int(seq)
	}
	return r.Params()[0]
}

// Purge implements scheduler.Tx.
func (t *tx) Purge(_ context.Context, before lessor.Instant, limit int) (int, error) {
	if limit <= 0 || t.err != nil {
		return 0, t.err
	}
	page, err := t.endedJobs(lockEnded, wire.Instant(before), wire.Int8(int64(limit)))
	if err != nil || len(page.jobs) == 0 {
		return 0, err
	}
	t.freeKeys(page.keys)
	_ = t.write("purge", wire.Step{Stmt: purgeDone}, t.seqArray(page.seqs)) // kept in t.err
	ids := wire.IDs(page.jobs)
	for _, s := range purges {
		_ = t.write("purge", wire.Step{Stmt: s}, ids)
	}
	return len(page.jobs), t.err
}

// purgesOfRecords remove a page each, the oldest rows first, and count it. They skip rows that another node purges.
var purgesOfRecords = []*wire.Statement{
	purgePage("tick", "tick_at < $1::bigint order by tick_at"),
	purgePage("alert", "cleared_at > 0 and cleared_at < $1::bigint order by cleared_at"),
	purgePage("audit", "at < $1::bigint order by at"),
}

func purgePage(table, old string) *wire.Statement {
	return wire.SQL("with gone as (delete from " + table + " where ctid = any(array(select ctid from " + table +
		" where " + old + " limit $2::bigint for update skip locked)) returning 1) select count(*) from gone")
}

// PurgeRecords implements scheduler.Tx.
func (t *tx) PurgeRecords(_ context.Context, before lessor.Instant, limit int) (n int, err error) {
	if limit <= 0 || t.err != nil {
		return 0, t.err
	}
	for _, s := range purgesOfRecords {
		t.add("purge", wire.Step{Stmt: s, Each: func(r *wire.Row) error {
			n += int(r.Int())
			return nil
		}}, wire.Instant(before), wire.Limit(limit))
	}
	err = t.send("purge")
	t.wrote = t.wrote || n > 0
	return n, err
}
