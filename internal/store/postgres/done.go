package postgres

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// doneColumns begin as those of an attempt.
const (
	doneColumns = attemptColumns + ", state, result"
	doneTypes   = attemptTypes + "ty"
)

// endColumns stand in done besides: whose the job was.
const (
	endColumns = doneColumns + ", tenant, definition"
	endTypes   = doneTypes + "ut"
)

var (
	putDone = wire.InsertAll("done", endColumns+", started_at", endTypes+"i")
	// putDoneAgain looks for the first grant.
	putDoneAgain = wire.Plural("insert into done ("+endColumns+", started_at) select u.*, coalesce("+
		"(select granted_at from attempt where job = u.job order by fence limit 1), case when u.lease is null then 0 else u.granted_at end)"+
		" from ({rows}) u", endTypes, endColumns)
	takeDone = wire.SQL("with taken as (delete from done r using " + placeParams + " where " + wire.At("r.seq", "m.seq") + " and r.job = m.job" +
		" returning r.job, r.definition), opened as (update definition_job o set open = true from taken" +
		" where taken.definition is not null and " + wire.At("o.definition", "taken.definition") + " and o.job = taken.job)" +
		" select 1 / (case when count(*) = $3::bigint then 1 else 0 end) from taken")
	purgeDone = wire.SQL("with gone as (delete from done where seq = any($1::bigint[]) returning job, definition)" +
		" delete from definition_job o using gone where gone.definition is not null and " + wire.At("o.definition", "gone.definition") + " and o.job = gone.job")
)

// grantedOnce reports whether an end is that of the job's first grant, as its record tells: it was submitted, granted, begun if
// there was a beat, and ended. A cancel request has an entry too; then it is looked up.
func grantedOnce(a *rules.Attempt) bool {
	steps := 3
	if a.FirstBeatAt != 0 {
		steps++
	}
	return !a.Lease.IsZero() && a.Turn.Steps == steps
}

// putDone inserts the rows of jobs that end.
func (t *tx) putDone(moves []scheduler.Move) {
	t.put(moves, "end jobs", putDone, func(m *scheduler.Move) bool { return m.To == rules.Ended && grantedOnce(&m.Done.Attempt) },
		func(r *wire.Rows, m *scheduler.Move) {
			bindDone(r, m.Done)
			t.bindOwner(r, m)
			r.Instant(m.Done.Attempt.GrantedAt)
		})
	t.put(moves, "end jobs", putDoneAgain, func(m *scheduler.Move) bool { return m.To == rules.Ended && !grantedOnce(&m.Done.Attempt) },
		func(r *wire.Rows, m *scheduler.Move) {
			bindDone(r, m.Done)
			t.bindOwner(r, m)
		})
}

func bindDone(r *wire.Rows, d *rules.Done) {
	bindTurn(r, &d.Attempt.Turn)
	r.IDOrNull(d.Attempt.Lease.UUID)
	bindEnd(r, &d.Attempt)
	r.Text(string(d.State))
	r.BytesOrNull(d.Result)
}

func readDone(r *wire.Row) *rules.Done {
	return &rules.Done{Attempt: readAttempt(r), State: lessor.State(r.Text()), Result: r.Bytes()}
}
