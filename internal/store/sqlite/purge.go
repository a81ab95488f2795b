package sqlite

import (
	"context"

	"lessor"
)

const (
	readEnded = "select done.seq, done.job, tenant, job.idempotency_key, definition from done" +
		" cross join job on job.id = done.job cross join lane on lane.id = done.lane" +
		" where ended_at < +? order by ended_at limit +?"
	dropDone = "delete from done where seq = ?"
	dropKey  = "delete from idempotency where tenant = ? and key = ? and job = ?"
)

// purges delete the rows that are found by a job's id.
var purges = []string{
	"delete from attempt where job = ?",
	"delete from note where job = ?",
	"delete from report where job = ?",
	"delete" + ofJob,
	"delete from output where job = ?",
	"delete from message where job = ?",
	"delete from job where id = ?",
}

// ended is a job to purge or to strip.
type ended struct {
	seq        int64
	job        lessor.JobID
	tenant     lessor.UUID
	key        string
	definition string
}

// Purge implements scheduler.Tx. Jobs that ended first go first.
func (t *tx) Purge(_ context.Context, before lessor.Instant, limit int) (int, error) {
	var page []ended
	err := t.do("purge", func() error {
		err := query(t.conn, readEnded,
			func(a *args) {
				a.instant(before)
				a.limit(limit)
			},
			func(r *result) error {
				page = append(page, ended{
					seq: r.Int(), job: lessor.JobID{UUID: r.ID()}, tenant: r.ID(), key: r.Text(), definition: r.Text(),
				})
				return nil
			})
		for _, e := range page {
			if err == nil {
				err = t.purge(e)
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(page), nil
}

func (t *tx) purge(e ended) error {
	if err := query(t.conn, dropDone, func(a *args) { a.Int(e.seq) }, nil); err != nil {
		return err
	}
	if err := t.freeKey(e); err != nil {
		return err
	}
	if err := t.dropRun(e); err != nil {
		return err
	}
	for _, text := range purges {
		if err := query(t.conn, text, func(a *args) { a.ID(e.job.UUID) }, nil); err != nil {
			return err
		}
	}
	return nil
}

// freeKey gives back the idempotency key of a job.
func (t *tx) freeKey(e ended) error {
	if e.key == "" {
		return nil
	}
	return query(t.conn, dropKey, func(a *args) {
		a.ID(e.tenant)
		a.Text(e.key)
		a.ID(e.job.UUID)
	}, nil)
}

// dropRun removes a job from its definition's list.
func (t *tx) dropRun(e ended) error {
	if e.definition == "" {
		return nil
	}
	return query(t.conn, dropRun, func(a *args) {
		a.Text(e.definition)
		a.ID(e.job.UUID)
	}, nil)
}

// kernelPurges delete rows from before an instant, the oldest first.
var kernelPurges = []string{
	"delete from tick where (tenant, definition, tick_at) in" +
		" (select tenant, definition, tick_at from tick where tick_at < +? order by tick_at limit +?)",
	"delete from alert where id in" +
		" (select id from alert where cleared_at > 0 and cleared_at < +? order by cleared_at limit +?)",
	"delete from audit where id in (select id from audit where at < +? order by at limit +?)",
}

// PurgeRecords implements scheduler.Tx.
func (t *tx) PurgeRecords(_ context.Context, before lessor.Instant, limit int) (n int, err error) {
	err = t.do("purge", func() error {
		for _, text := range kernelPurges {
			if err := query(t.conn, text, func(a *args) {
				a.instant(before)
				a.limit(limit)
			}, nil); err != nil {
				return err
			}
			n += t.conn.Changes()
		}
		return nil
	})
	return n, err
}
