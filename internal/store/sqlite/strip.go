package sqlite

import (
	"context"
	"encoding/json"

	"lessor"
)

// stripSetting holds the last job that was stripped, so that no job needs a flag.
const stripSetting = "sqlite.stripped"

// stripped is the last job that was stripped. Jobs are stripped in the order of their ends, then of their seqs.
type stripped struct {
	EndedAt lessor.Instant `json:"ended_at"`
	Seq     int64          `json:"seq"`
}

const readUnstripped = "select done.seq, done.job, tenant, job.idempotency_key, ended_at from done" +
	" cross join job on job.id = done.job cross join lane on lane.id = done.lane" +
	" where ended_at < +? and (ended_at, done.seq) > (+?, +?) order by ended_at, done.seq limit +?"

// strips delete the large values of a job.
var strips = []string{
	"delete from report where job = ?",
	"delete" + ofJob,
	"delete from output where job = ?",
	"update job set payload = null where id = ?",
}

const stripResult = "update done set result = null where seq = ? and result is not null"

// Strip implements scheduler.Tx.
func (t *tx) Strip(ctx context.Context, before lessor.Instant, limit int) (int, error) {
	var mark stripped
	raw, err := t.Setting(ctx, stripSetting)
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &mark)
	}
	if err != nil {
		return 0, readFault(ctx, "strip", err)
	}
	back := mark.EndedAt > before // the clock was set back, and what ends now may end before the mark
	if back {
		mark = stripped{EndedAt: before}
	}
	var page []ended
	err = t.do("strip", func() error {
		err := query(t.conn, readUnstripped,
			func(a *args) {
				a.instant(before)
				a.instant(mark.EndedAt)
				a.Int(mark.Seq)
				a.limit(limit)
			},
			func(r *result) error {
				page = append(page, ended{seq: r.Int(), job: lessor.JobID{UUID: r.ID()}, tenant: r.ID(), key: r.Text()})
				mark = stripped{EndedAt: r.instant(), Seq: page[len(page)-1].seq}
				return nil
			})
		for _, e := range page {
			if err == nil {
				err = t.strip(e)
			}
		}
		return err
	})
	if err != nil || len(page) == 0 && !back {
		return 0, err
	}
	if raw, err = json.Marshal(mark); err != nil {
		return 0, err
	}
	return len(page), t.SaveSetting(ctx, stripSetting, raw)
}

func (t *tx) strip(e ended) error {
	if err := t.freeKey(e); err != nil {
		return err
	}
	for _, text := range strips {
		if err := query(t.conn, text, func(a *args) { a.ID(e.job.UUID) }, nil); err != nil {
			return err
		}
	}
	return query(t.conn, stripResult, func(a *args) { a.Int(e.seq) }, nil)
}
