package postgres

import (
	"context"

	"lessor"
)

// A page of jobs that ended is locked, those first that ended first, and then removed table by table. Jobs that somebody has
// locked (an operator's retry, another node's purge) are passed over.
var (
	lockEnded = sql("select d.job, d.seq, j.idempotency_key, n.tenant, d.ended_at from" +
		" (select job, seq, lane, ended_at from done where ended_at < $1::bigint order by ended_at, seq limit $2::bigint" +
		" for update skip locked) d join job j on j.id = d.job join lane n on n.id = d.lane")
	purgeKeys = sql("delete from idempotency i using (" + unnestAs("utu", "tenant, key, job") + ") k" +
		" where " + at("i.tenant", "k.tenant") + " and i.key = k.key and i.job = k.job")
	purges = []*statement{
		sql("delete from attempt where job = any($1::uuid[])"),
		sql("delete from note where job = any($1::uuid[])"),
		sql("delete from report where job = any($1::uuid[])"),
		sql("delete from job where id = any($1::uuid[])"),
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

func (t *tx) endedJobs(s *statement, params ...[]byte) (page endedPage, err error) {
	err = t.query("lock ended jobs", s, func(r *row) error {
		job := lessor.JobID{UUID: r.id()}
		page.jobs, page.seqs = append(page.jobs, job), append(page.seqs, r.int())
		key, tenant := r.text(), r.id()
		if key != "" {
			page.keys = append(page.keys, endedKey{tenant: tenant, job: job.UUID, key: key})
		}
		page.last = r.instant()
		return nil
	}, params...)
	return page, err
}

// freeKeys lets the idempotency keys of jobs be used again.
func (t *tx) freeKeys(keys []endedKey) {
	if len(keys) == 0 {
		return
	}
	r := t.scratch.reset()
	for _, k := range keys {
		r.row()
		r.id(k.tenant)
		r.text(k.key)
		r.id(k.job)
	}
	_ = t.write("free keys", step{stmt: purgeKeys}, r.params()...) // kept in t.err
}

func (t *tx) seqArray(seqs []int64) []byte {
	r := t.scratch.reset()
	for _, seq := range seqs {
		r.row()
		r.int(seq)
	}
	return r.params()[0]
}

// Purge implements scheduler.Tx.
func (t *tx) Purge(_ context.Context, before lessor.Instant, limit int) (int, error) {
	if limit <= 0 || t.err != nil {
		return 0, t.err
	}
	page, err := t.endedJobs(lockEnded, instantOf(before), int8Of(int64(limit)))
	if err != nil || len(page.jobs) == 0 {
		return 0, err
	}
	t.freeKeys(page.keys)
	_ = t.write("purge", step{stmt: purgeDone}, t.seqArray(page.seqs)) // kept in t.err
	ids := idsOf(&t.view, page.jobs)
	for _, s := range purges {
		_ = t.write("purge", step{stmt: s}, ids)
	}
	return len(page.jobs), t.err
}
