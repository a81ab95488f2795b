package postgres

import (
	"context"
	"fmt"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

const takeVerb = "take rows from their place"

var placeParams = "(" + wire.Unnest("iu", "seq, job") + ") m"

var (
	takeQueued = wire.SQL(wire.Exactly("delete from queue r"+
		" using "+placeParams+" where "+wire.At("r.seq", "m.seq")+" and r.job = m.job", 2))
	takeDelayed = wire.SQL(wire.Exactly("delete from delayed r"+
		" using "+placeParams+" where "+wire.At("r.seq", "m.seq")+" and r.job = m.job", 2))
	// takeLeased must find all leases with these fences. It compares their sum, since the fences of a job only rise.
	takeLeased = wire.SQL("with hit as (delete from lease where seq = any($1::bigint[]) returning fence)" +
		" select 1 / (case when count(*) = $2::bigint and sum(fence) = $3::bigint then 1 else 0 end) from hit")

	// Rows of jobs that were granted before name their owner.
	turnColumns     = row.Columns(row.Turn)
	putQueue        = insertInto("queue", row.Turn)
	putQueueAgain   = insertOwned("queue", row.Turn)
	putDelayed      = insertInto("delayed", row.Waiting)
	putDelayedAgain = insertOwned("delayed", row.Waiting)
	putLease        = wire.InsertAll("lease", leaseColumns+", definition", row.Kinds(leaseRow)+"t")
	putAttempt      = insertInto("attempt", row.Attempt)
)

// insertOwned inserts rows that name the owners of their jobs.
func insertOwned[T any](table string, declare func(*row.Codec, *T)) *wire.Statement {
	columns := row.Columns(declare) + ", " + row.Columns(ownerRow)
	return wire.InsertAll(table, columns, row.Kinds(declare)+row.Kinds(ownerRow))
}

// Move implements scheduler.Tx: all rows are taken from where they are before the first is put where it goes.
func (t *tx) Move(ctx context.Context, moves []scheduler.Move) error {
	if len(moves) == 0 || t.err != nil {
		return t.err
	}
	for i := range moves {
		m := &moves[i]
		if m.From > rules.Ended || m.To == rules.Nowhere || m.To > rules.Ended {
			t.err = fmt.Errorf("%w: a job cannot move from place %d to %d", scheduler.ErrBadCall, m.From, m.To)
			return t.err
		}
		if m.To == rules.Leased {
			t.granted, t.leased = append(t.granted, m.Held.Turn.Job), true
			raise(&t.store.origin.fence, m.Held.Turn.Fence)
			t.know(m.Held)
			if m.Held.RequestID != "" {
				t.requests[requestOf(m.Held)] = struct{}{}
			}
		}
		if m.From == rules.Leased {
			t.ended[m.Held.ID], t.leased = struct{}{}, true
		}
	}
	if err := t.loadOwners(ctx, moves); err != nil {
		return err
	}
	t.takeRows(moves)
	t.putRows(moves)
	t.closeRuns(moves)
	if !t.gated { // what follows is the end
		t.conn.Push()
	}
	return t.err
}

func (t *tx) takeRows(moves []scheduler.Move) {
	from := func(p rules.Place) func(*scheduler.Move) bool {
		return func(m *scheduler.Move) bool { return m.From == p }
	}
	t.takeLeased(moves)
	t.take(moves, takeDelayed, from(rules.Delayed), bindPlace)
	t.take(moves, takeDone, from(rules.Ended), bindPlace)
	if t.guard && t.gated {
		t.late = append(t.late, moves...)
		return
	}
	t.takeQueued(moves)
}

// takeLeased takes the rows that are moved from their leases.
func (t *tx) takeLeased(moves []scheduler.Move) {
	r, n, fences := t.scratch.Reset(), int64(0), int64(0)
	for i := range moves {
		if m := &moves[i]; m.From == rules.Leased {
			r.Next()
			r.Int(m.Held.Turn.Seq)
			n, fences = n+1, fences+m.Held.Turn.Fence
		}
	}
	if n > 0 {
		params := append(r.Params(), wire.Int8(n), wire.Int8(fences))
		_ = t.write(takeVerb, wire.Step{Stmt: takeLeased, Guard: scheduler.ErrMoved}, params...) // kept in t.err
	}
}

// takeQueued takes the rows that are moved from the queue.
func (t *tx) takeQueued(moves []scheduler.Move) {
	alone := func(m *scheduler.Move) bool { return m.From == rules.InQueue && !together(m, m.From) }
	t.take(moves, takeQueued, alone, bindPlace)
	t.takeFromCohorts(moves)
}

func bindPlace(c *row.Codec, m *scheduler.Move) {
	row.Integer(c, "seq", &m.Turn.Seq)
	row.ID(c, "job", &m.Turn.Job.UUID)
}

func bindWaiting(c *row.Codec, m *scheduler.Move) {
	row.Turn(c, &m.Turn)
	row.Wait(c, &m.Wait)
}

// take runs a statement on the rows of the moves that come from one place. It must find each of them.
func (t *tx) take(
	moves []scheduler.Move, s *wire.Statement, comes func(*scheduler.Move) bool, bind func(*row.Codec, *scheduler.Move),
) {
	r, n := t.scratch.Reset(), int64(0)
	c := encode(r)
	for i := range moves {
		if comes(&moves[i]) {
			r.Next()
			bind(c, &moves[i])
			n++
		}
	}
	if n > 0 {
		params := append(r.Params(), wire.Int8(n))
		_ = t.write(takeVerb, wire.Step{Stmt: s, Guard: scheduler.ErrMoved}, params...) // kept in t.err
	}
}

func (t *tx) putRows(moves []scheduler.Move) {
	first := func(p rules.Place) func(*scheduler.Move) bool {
		return func(m *scheduler.Move) bool { return m.To == p && m.Turn.Fence == 0 && !together(m, m.To) }
	}
	again := func(p rules.Place) func(*scheduler.Move) bool {
		return func(m *scheduler.Move) bool { return m.To == p && m.Turn.Fence != 0 }
	}
	t.putCohorts(moves)
	t.put(moves, "queue", putQueue, first(rules.InQueue), func(c *row.Codec, m *scheduler.Move) {
		row.Turn(c, &m.Turn)
	})
	t.put(moves, "queue", putQueueAgain, again(rules.InQueue), func(c *row.Codec, m *scheduler.Move) {
		row.Turn(c, &m.Turn)
		t.bindOwner(c, m)
	})
	t.put(moves, "delay", putDelayed, first(rules.Delayed), func(c *row.Codec, m *scheduler.Move) { bindWaiting(c, m) })
	t.put(moves, "delay", putDelayedAgain, again(rules.Delayed), func(c *row.Codec, m *scheduler.Move) {
		bindWaiting(c, m)
		t.bindOwner(c, m)
	})
	leased := func(m *scheduler.Move) bool { return m.To == rules.Leased }
	t.put(moves, "lease", putLease, leased, func(c *row.Codec, m *scheduler.Move) {
		definition := t.owners[laneOf(m)].definition
		leaseRow(c, m.Held)
		row.TextOrNull(c, "definition", &definition)
	})
	t.put(moves, "record attempts", putAttempt, func(m *scheduler.Move) bool { return m.Attempt != nil },
		func(c *row.Codec, m *scheduler.Move) { row.Attempt(c, m.Attempt) })
	t.putDone(moves)
}

// put inserts the rows of one table.
func (t *tx) put(
	moves []scheduler.Move, verb string, s *wire.Statement,
	goes func(*scheduler.Move) bool, bind func(*row.Codec, *scheduler.Move),
) {
	r, n := t.scratch.Reset(), 0
	c := encode(r)
	for i := range moves {
		if goes(&moves[i]) {
			r.Next()
			bind(c, &moves[i])
			n++
		}
	}
	if n > 0 {
		_ = t.write(verb, wire.Step{Stmt: s, Rows: r}) // kept in t.err
	}
}
