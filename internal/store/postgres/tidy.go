package postgres

import (
	"time"

	"lessor"
	"lessor/internal/store/postgres/wire"
)

// A store that serves also removes old changes and the streams of nodes that are gone. A live stream keeps its last
// change, so that an idle stream does not look like one that lost its beginning. Every start of a node makes a stream,
// so a node that crashes again and again must not make readers slow: a dead stream is removed after minutes. Its last
// change stays for a week, so that its node, if it was only away, does not believe that the database went back. Each
// start leaves at most one such change, and removes those that are old.
var (
	stayAlive = wire.SQL("update stream set seen_at = $2::bigint where id = $1::bigint")
	trimOwn   = wire.SQL("delete from change where stream = $1::bigint and n < $2::bigint")
	trimDead  = wire.SQL("delete from change c using stream s where s.seen_at < $1::bigint and c.stream = s.id" +
		" and c.n < (select max(n) from change m where m.stream = s.id)")
	dropDead    = wire.SQL("delete from stream where seen_at < $1::bigint")
	dropOrphans = wire.SQL("delete from change where at < " + clockMillis + " - $1::bigint" +
		" and stream not in (select id from stream)")
)

const (
	// tidyEvery is the time between two tidyings.
	tidyEvery = keepFor / 3
	// deadAfter is when a stream that its node did not touch is removed, goneAfter when its last change is. A node
	// does not write to its stream from half of deadAfter on (putChange).
	deadAfter = 5 * keepFor
	goneAfter = 7 * 24 * time.Hour
)

// tidied is when the store was tidied, and which change was the newest then.
type tidied struct {
	at       lessor.Instant
	newestAt []changeAt
	spent    lessor.Instant // when spent cohorts were last dropped
}

// changeAt is the newest change of a stream at an instant.
type changeAt struct {
	stream, n int64
	at        lessor.Instant
}

var newestOwn = wire.SQL("select coalesce(max(n), 0) from change where stream = $1::bigint")

// tidy removes what no node needs any more, if it is time to, in one short transaction.
func (s *Store) tidy(c *wire.Conn, now lessor.Instant) error {
	d := &s.tidied
	if now.Sub(d.at).Abs() < tidyEvery {
		return nil
	}
	d.at = now
	id := s.stream.id.Load()
	newest := changeAt{stream: id, at: now}
	limits := wire.Limits{Idle: time.Second, Lock: time.Second, Statement: s.cfg.StatementTimeout}
	err := unflushed(c, limits, func() {
		c.Add(wire.Step{Verb: "stay alive", Stmt: stayAlive}, wire.Int8(id), wire.Instant(now))
		c.Add(wire.Step{Verb: "find the newest change", Stmt: newestOwn, Each: func(r *wire.Row) error {
			newest.n = r.Int()
			return nil
		}}, wire.Int8(id))
		for len(d.newestAt) > 0 && (now.Sub(d.newestAt[0].at).Abs() > keepFor || d.newestAt[0].stream != id) {
			if m := d.newestAt[0]; m.stream == id {
				c.Add(wire.Step{Verb: "trim own changes", Stmt: trimOwn}, wire.Int8(id), wire.Int8(m.n))
			}
			d.newestAt = d.newestAt[1:]
		}
		c.Add(wire.Step{Verb: "trim dead streams", Stmt: trimDead}, wire.Instant(now.Add(-deadAfter)))
		c.Add(wire.Step{Verb: "drop dead streams", Stmt: dropDead}, wire.Instant(now.Add(-deadAfter)))
	})
	d.newestAt = append(d.newestAt, newest)
	return err
}
