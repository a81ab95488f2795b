package postgres

import (
	"time"

	"lessor"
)

// How a store tidies up, between its beats: changes that everybody has read, and streams of stores that are gone. A live
// stream keeps its last row, so that one that was idle does not look like one that lost its beginning.
var (
	stayAlive = sql("update stream set seen_at = $2::bigint where id = $1::bigint")
	trimOwn   = sql("delete from change where stream = $1::bigint and n < $2::bigint")
	trimDead  = sql("delete from change c using stream s where s.seen_at < $1::bigint and c.stream = s.id" +
		" and c.n < (select max(n) from change m where m.stream = s.id)")
	dropDead = sql("with dead as (delete from stream where seen_at < $1::bigint returning id)" +
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

var newestOwn = sql("select coalesce(max(n), 0) from change where stream = $1::bigint")

// tidy removes what nobody needs any more, if it is time to. All of it is one short transaction.
func (s *Store) tidy(c *conn, now lessor.Instant) error {
	d := &s.tidied
	if now.Sub(d.at).Abs() < tidyEvery {
		return nil
	}
	d.at = now
	id := s.stream.id.Load()
	newest := mark{stream: id, at: now}
	c.open(begin, limits{time.Second, time.Second, s.cfg.StatementTimeout})
	c.add(step{verb: "begin", stmt: noFlush})
	c.add(step{verb: "stay alive", stmt: stayAlive}, int8Of(id), instantOf(now))
	c.add(step{verb: "find the newest change", stmt: newestOwn, each: func(r *row) error {
		newest.n = r.int()
		return nil
	}}, int8Of(id))
	for len(d.marks) > 0 && (now.Sub(d.marks[0].at).Abs() > keepFor || d.marks[0].stream != id) {
		if m := d.marks[0]; m.stream == id {
			c.add(step{verb: "trim own changes", stmt: trimOwn}, int8Of(id), int8Of(m.n))
		}
		d.marks = d.marks[1:]
	}
	c.add(step{verb: "trim dead streams", stmt: trimDead}, instantOf(now.Add(-deadAfter)))
	c.add(step{verb: "drop dead streams", stmt: dropDead}, instantOf(now.Add(-goneAfter)))
	c.add(step{verb: "commit", stmt: commit})
	err := c.send()
	d.marks = append(d.marks, newest)
	return err
}
