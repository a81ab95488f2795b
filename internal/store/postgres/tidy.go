package postgres

import (
	"time"

	"lessor"
	"lessor/internal/store/postgres/wire"
)

// How a store tidies up, between its beats: changes that everybody has read, and streams of stores that are gone. A live
// stream keeps its last row, so that one that was idle does not look like one that lost its beginning.
var (
	stayAlive = wire.SQL("update stream set seen_at = $2::bigint where id = $1::bigint")
	trimOwn   = wire.SQL("delete from change where stream = $1::bigint and n < $2::bigint")
	trimDead  = wire.SQL("delete from change c using stream s where s.seen_at < $1::bigint and c.stream = s.id" +
		" and c.n < (select max(n) from change m where m.stream = s.id)")
	dropDead = wire.SQL("with dead as (delete from stream where seen_at < $1::bigint returning id)" +
		" delete from change c using dead where c.stream = dead.id")
)

const (
	// tidyEvery is between two tidyings: a third of how long changes are kept.
	tidyEvery = keepFor / 3
	// deadAfter is when a stream counts as no longer written to, and goneAfter when nobody can want to follow it any more.
	deadAfter = 5 * keepFor
	goneAfter = 7 * 24 * time.Hour
)

// tidied is what was known at the last tidyings: which change was the newest, and when.
type tidied struct {
	at    lessor.Instant
	marks []mark
	spent lessor.Instant // when spent cohorts were last dropped
}

type mark struct {
	stream, n int64
	at        lessor.Instant
}

var newestOwn = wire.SQL("select coalesce(max(n), 0) from change where stream = $1::bigint")

// tidy removes what nobody needs any more, if it is time to. All of it is one short transaction.
func (s *Store) tidy(c *wire.Conn, now lessor.Instant) error {
	d := &s.tidied
	if now.Sub(d.at).Abs() < tidyEvery {
		return nil
	}
	d.at = now
	id := s.stream.id.Load()
	newest := mark{stream: id, at: now}
	c.Begin(begin, wire.Limits{Idle: time.Second, Lock: time.Second, Statement: s.cfg.StatementTimeout})
	c.Add(wire.Step{Verb: "begin", Stmt: noFlush})
	c.Add(wire.Step{Verb: "stay alive", Stmt: stayAlive}, wire.Int8(id), wire.Instant(now))
	c.Add(wire.Step{Verb: "find the newest change", Stmt: newestOwn, Each: func(r *wire.Row) error {
		newest.n = r.Int()
		return nil
	}}, wire.Int8(id))
	for len(d.marks) > 0 && (now.Sub(d.marks[0].at).Abs() > keepFor || d.marks[0].stream != id) {
		if m := d.marks[0]; m.stream == id {
			c.Add(wire.Step{Verb: "trim own changes", Stmt: trimOwn}, wire.Int8(id), wire.Int8(m.n))
		}
		d.marks = d.marks[1:]
	}
	c.Add(wire.Step{Verb: "trim dead streams", Stmt: trimDead}, wire.Instant(now.Add(-deadAfter)))
	c.Add(wire.Step{Verb: "drop dead streams", Stmt: dropDead}, wire.Instant(now.Add(-goneAfter)))
	c.Add(wire.Step{Verb: "commit", Stmt: commit})
	err := c.Send()
	d.marks = append(d.marks, newest)
	return err
}
