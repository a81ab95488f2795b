package postgres

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
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
	putDone = insertAll("done", endColumns+", started_at", endTypes+"i")
	// putDoneAgain looks for the first grant.
	putDoneAgain = plural("insert into done ("+endColumns+", started_at) select u.*, coalesce("+
		"(select granted_at from attempt where job = u.job order by fence limit 1), case when u.lease is null then 0 else u.granted_at end)"+
		" from ({rows}) u", endTypes, endColumns)
	takeDone = sql("with taken as (delete from done r using " + placeParams + " where " + at("r.seq", "m.seq") + " and r.job = m.job" +
		" returning r.job, r.definition), opened as (update definition_job o set open = true from taken" +
		" where taken.definition is not null and " + at("o.definition", "taken.definition") + " and o.job = taken.job)" +
		" select 1 / (case when count(*) = $3::bigint then 1 else 0 end) from taken")
	purgeDone = sql("with gone as (delete from done where seq = any($1::bigint[]) returning job, definition)" +
		" delete from definition_job o using gone where gone.definition is not null and " + at("o.definition", "gone.definition") + " and o.job = gone.job")
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
		func(r *rows, m *scheduler.Move) {
			bindDone(r, m.Done)
			t.bindOwner(r, m)
			r.instant(m.Done.Attempt.GrantedAt)
		})
	t.put(moves, "end jobs", putDoneAgain, func(m *scheduler.Move) bool { return m.To == rules.Ended && !grantedOnce(&m.Done.Attempt) },
		func(r *rows, m *scheduler.Move) {
			bindDone(r, m.Done)
			t.bindOwner(r, m)
		})
}

func bindDone(r *rows, d *rules.Done) {
	bindTurn(r, &d.Attempt.Turn)
	r.idOrNull(d.Attempt.Lease.UUID)
	bindEnd(r, &d.Attempt)
	r.text(string(d.State))
	r.bytesOrNull(d.Result)
}

func readDone(r *row) *rules.Done {
	return &rules.Done{Attempt: readAttempt(r), State: lessor.State(r.text()), Result: r.bytes()}
}
