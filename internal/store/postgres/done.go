package postgres

import (
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	doneColumns = row.Columns(row.Done)
	// endColumns are the other columns of done: the owner of the job.
	endColumns = doneColumns + ", " + row.Columns(ownerRow)
	endKinds   = row.Kinds(row.Done) + row.Kinds(ownerRow)

	putDone = wire.InsertAll("done", endColumns+", started_at", endKinds+"i")
	// putDoneAgain looks for the first grant.
	putDoneAgain = wire.Plural("insert into done ("+endColumns+", started_at) select u.*, coalesce("+
		"(select granted_at from attempt where job = u.job order by fence limit 1), case when u.lease is null then 0"+
		" else u.granted_at end)"+
		" from ({rows}) u", endKinds, endColumns)
	takeDone = wire.SQL("with taken as (delete from done r" +
		" using " + placeParams + " where " + wire.At("r.seq", "m.seq") + " and r.job = m.job" +
		" returning r.job, r.definition), opened as (update definition_job o set open = true from taken" +
		" where taken.definition is not null" +
		" and " + wire.At("o.definition", "taken.definition") + " and o.job = taken.job)" +
		" select 1 / (case when count(*) = $3::bigint then 1 else 0 end) from taken")
	purgeDone = wire.SQL("with gone as (delete from done where seq = any($1::bigint[]) returning job, definition)" +
		" delete from definition_job o using gone where gone.definition is not null" +
		" and " + wire.At("o.definition", "gone.definition") + " and o.job = gone.job")
)

// grantedOnce reports whether an end is certainly that of the job's first grant. Its record then has an entry for the
// submission, the grant, the begin if there was a heartbeat, and the end. With a cancel request it has one more; then
// the first grant is read.
func grantedOnce(a *rules.Attempt) bool {
	steps := 3
	if a.FirstBeatAt != 0 {
		steps++
	}
	return !a.Lease.IsZero() && a.Turn.Steps == steps
}

// putDone inserts the rows of jobs that end.
func (t *tx) putDone(moves []scheduler.Move) {
	once := func(m *scheduler.Move) bool { return m.To == rules.Ended && grantedOnce(&m.Done.Attempt) }
	again := func(m *scheduler.Move) bool { return m.To == rules.Ended && !grantedOnce(&m.Done.Attempt) }
	t.put(moves, "end jobs", putDone, once,
		func(c *row.Codec, m *scheduler.Move) {
			row.Done(c, m.Done)
			t.bindOwner(c, m)
			row.Integer(c, "started_at", &m.Done.Attempt.GrantedAt)
		})
	t.put(moves, "end jobs", putDoneAgain, again,
		func(c *row.Codec, m *scheduler.Move) {
			row.Done(c, m.Done)
			t.bindOwner(c, m)
		})
}
