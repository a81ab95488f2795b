package postgres

import (
	"context"

	"lessor"
	"lessor/internal/store/postgres/wire"
)

// One node strips at a time, and remembers the last job that was stripped: jobs go in the order of their ends, and of
// their seqs within one instant. A job whose end took longer to commit than its retention would be skipped, but commits
// take seconds and retention takes days.
var (
	lockStripped   = wire.SQL("select ended_at, seq from stripped where id for update skip locked")
	lockUnstripped = wire.SQL("select d.job, d.seq, j.idempotency_key, n.tenant, d.ended_at from" +
		" (select job, seq, lane, ended_at from done where ended_at < $1::bigint" +
		" and (ended_at, seq) > ($2::bigint, $3::bigint)" +
		" order by ended_at, seq limit $4::bigint for update) d" +
		" join job j on j.id = d.job join lane n on n.id = d.lane order by d.ended_at, d.seq")
	saveStripped = wire.SQL("update stripped set ended_at = $1::bigint, seq = $2::bigint where id")
	stripDone    = wire.SQL("update done set result = null where seq = any($1::bigint[]) and result is not null")
	strips       = []*wire.Statement{
		wire.SQL("delete from report where job = any($1::uuid[])"),
		wire.SQL("delete from journal where job = any($1::uuid[])"),
		wire.SQL("delete from output where job = any($1::uuid[])"),
		wire.SQL("update job set payload = null where id = any($1::uuid[]) and payload is not null"),
	}
)

// Strip implements scheduler.Tx. While another node strips there is nothing to do.
func (t *tx) Strip(_ context.Context, before lessor.Instant, limit int) (int, error) {
	if limit <= 0 || t.err != nil {
		return 0, t.err
	}
	var endedAt lessor.Instant
	var seq int64
	mine := false
	err := t.query("strip", lockStripped, func(r *wire.Row) error {
		endedAt, seq, mine = r.Instant(), r.Int(), true
		return nil
	})
	if err != nil || !mine {
		return 0, err
	}
	if endedAt > before { // the clock was set back, and what ends now may end before the mark
		endedAt, seq = before, 0
		_ = t.write("strip", wire.Step{Stmt: saveStripped}, wire.Instant(endedAt), wire.Int8(seq)) // kept in t.err
	}
	page, err := t.endedJobs(lockUnstripped,
		wire.Instant(before), wire.Instant(endedAt), wire.Int8(seq), wire.Int8(int64(limit)))
	if err != nil || len(page.jobs) == 0 {
		return 0, err
	}
	last := wire.Int8(page.seqs[len(page.seqs)-1])
	_ = t.write("strip", wire.Step{Stmt: saveStripped}, wire.Instant(page.last), last) // kept in t.err
	t.freeKeys(page.keys)
	_ = t.write("strip", wire.Step{Stmt: stripDone}, t.seqArray(page.seqs))
	ids := wire.IDs(page.jobs)
	for _, s := range strips {
		_ = t.write("strip", wire.Step{Stmt: s}, ids)
	}
	return len(page.jobs), t.err
}
