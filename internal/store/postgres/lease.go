package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	leaseColumns = row.Columns(leaseRow)
	beatColumns  = row.Columns(row.Beat)

	// The id of a lease contains the seq of its job, by which the row is found (rules.Seal, decision 16).
	peekLeases = wire.SQL("select " + leaseColumns + " from lease where seq = any($1::bigint[])" +
		" and id = any($2::uuid[])")
	// lockLeases waits for the nodes that change one of them, and returns what can change, as it is then. All lock in
	// the order of seqs, and so in one statement.
	lockLeases = wire.SQL("select id, " + beatColumns + " from lease where seq = any($1::bigint[])" +
		" and id = any($2::uuid[]) order by seq for no key update")
	readLeases = wire.SQL("select " + leaseColumns + " from lease order by seq")
	listLeases = wire.SQL("select " + row.Columns(listedRow) +
		" from lease where (issued_at, seq) < ($1::bigint, $2::bigint)" +
		" and ($3::text = '' or worker = $3)" +
		" and ($4::uuid is null or tenant = $4) and ($5::uuid is null or token = $5)" +
		" order by issued_at desc, seq desc limit $6::bigint")
	saveLeases = wire.Plural(wire.Exactly("update lease l set "+wire.Assign("u", beatColumns)+
		" from ({rows}) u where "+wire.At("l.seq", "u.seq")+" and l.fence = u.fence", len(row.Kinds(beatRow))),
		row.Kinds(beatRow), row.Columns(beatRow))
)

// leaseRow is a row of lease.
func leaseRow(c *row.Codec, h *rules.Held) {
	row.Lease(c, h)
	row.Beat(c, h)
}

// beatRow is a change of a lease, which its seq and its fence name.
func beatRow(c *row.Codec, h *rules.Held) {
	row.Integer(c, "seq", &h.Turn.Seq)
	row.Integer(c, "fence", &h.Turn.Fence)
	row.Beat(c, h)
}

func readLease(r *wire.Row) *rules.Held {
	h := &rules.Held{}
	leaseRow(decode(r), h)
	return h
}

// Peek implements scheduler.Tx.
func (t *tx) Peek(_ context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error) {
	leases := make(map[lessor.LeaseID]*rules.Held, len(ids))
	if len(ids) == 0 || t.err != nil {
		return leases, t.err
	}
	t.addPeek(ids, leases)
	return leases, t.send("peek at leases")
}

func (t *tx) addPeek(ids []lessor.LeaseID, into map[lessor.LeaseID]*rules.Held) {
	t.add("peek at leases", wire.Step{Stmt: peekLeases, Each: func(r *wire.Row) error {
		h := readLease(r)
		into[h.ID] = h
		return nil
	}}, t.leaseKeys(ids)...)
}

// leaseKeys are parameters that find leases.
func (v *view) leaseKeys(ids []lessor.LeaseID) [][]byte {
	r := v.scratch.Reset()
	for _, id := range ids {
		r.Next()
		r.Int(v.store.seal.Seq(id))
		r.ID(id.UUID)
	}
	return r.Params()
}

// Leases implements scheduler.Tx. What never changes is at hand for leases that this node granted; of the others it is
// read once they are locked.
func (t *tx) Leases(_ context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error) {
	leases := make(map[lessor.LeaseID]*rules.Held, len(ids))
	if len(ids) == 0 || t.err != nil {
		return leases, t.err
	}
	if known, ok := t.atHand(ids); ok {
		return known, nil
	}
	if slices.ContainsFunc(ids, t.changed) && t.await() != nil { // the commit before must have them first
		return leases, t.err
	}
	lock := func() { t.addLeases(ids, leases) }
	if t.leased {
		return leases, t.locked("lock leases", lock)
	}
	return leases, t.lockedFirst(lock)
}

func (t *tx) addLeases(ids []lessor.LeaseID, into map[lessor.LeaseID]*rules.Held) {
	// The store may forget a lease before the answer comes, so what it knows is taken now.
	known := make(map[lessor.LeaseID]*rules.Held, len(ids))
	var unknown []lessor.LeaseID
	for _, id := range ids {
		if k, ok := t.store.leases[id]; ok {
			known[id] = k.held
		} else {
			unknown = append(unknown, id)
		}
	}
	t.add("lock leases", wire.Step{Stmt: lockLeases, Each: func(r *wire.Row) error {
		id := lessor.LeaseID{UUID: r.ID()}
		if k, ok := known[id]; ok {
			h := new(*k)
			row.Beat(decode(r), h)
			into[id] = h
			t.know(new(*h))
		}
		return nil
	}}, t.leaseKeys(ids)...)
	if len(unknown) > 0 {
		t.addPeek(unknown, into)
	}
}

// know keeps a lease as it is after the commit. The caller must not change it any more.
func (t *tx) know(h *rules.Held) { t.known[h.ID] = h }

// SaveLeases implements scheduler.Tx. A lease that is not live is scheduler.ErrMoved. Rows that were not locked are
// changed in the order of seqs, as they are locked.
func (t *tx) SaveLeases(_ context.Context, held []*rules.Held) error {
	if len(held) == 0 {
		return t.err
	}
	slices.SortFunc(held, func(a, b *rules.Held) int { return cmp.Compare(a.Turn.Seq, b.Turn.Seq) })
	r := t.scratch.Reset()
	c := encode(r)
	for _, h := range held {
		t.know(h)
		r.Next()
		beatRow(c, h)
	}
	t.leased = true
	step := wire.Step{Stmt: saveLeases, Rows: r, Guard: scheduler.ErrMoved}
	err := t.write("save leases", step, wire.Int8(int64(len(held))))
	t.conn.Push()
	return err
}

// EachLease implements scheduler.View.
func (v *view) EachLease(_ context.Context, fn func(*rules.Held) error) error {
	return v.query("read leases", readLeases, func(r *wire.Row) error { return fn(readLease(r)) })
}

// LeaseList implements scheduler.View.
func (v *view) LeaseList(_ context.Context, q scheduler.LeaseQuery) (list []scheduler.ListedLease, err error) {
	at, seq := grantedBefore(q.After)
	err = v.query("list leases", listLeases, collect(&list, listedRow), at, seq, wire.Text(q.Worker),
		wire.IDOrNil(q.Tenant), wire.IDOrNil(q.Token), wire.Limit(q.Limit))
	return list, err
}

// listedRow is a lease with its place in a list: leases are listed by when they were granted, and those of one instant
// by the seqs of their jobs.
func listedRow(c *row.Codec, l *scheduler.ListedLease) {
	row.Text(c, "(select type from lane where lane.id = lease.lane)", &l.Type)
	l.Held = &rules.Held{}
	leaseRow(c, l.Held)
	l.Place = scheduler.LeasePlace{A: int64(l.Held.IssuedAt), B: l.Held.Turn.Seq}
}

// grantedBefore returns the bound of a list of leases that begins after a place; nil begins with the newest.
func grantedBefore(after *scheduler.LeasePlace) (at, seq []byte) {
	if after == nil {
		after = &scheduler.LeasePlace{A: math.MaxInt64}
	}
	return wire.Int8(after.A), wire.Int8(after.B)
}

var listLocks = variants("select "+row.Columns(listedRow)+" from lease where lock_key is not null"+
	" and (issued_at, seq) < ($2::bigint, $3::bigint)", " order by issued_at desc, seq desc limit $4::bigint",
	filter{"tenant = ", "uuid"})

// LockList implements scheduler.View.
func (v *view) LockList(_ context.Context, q scheduler.LockQuery) ([]scheduler.ListedLease, error) {
	at, seq := grantedBefore(q.After)
	return page(v, "list locks", listLocks, [][]byte{wire.IDOrNil(q.Tenant)}, listedRow, at, seq, wire.Limit(q.Limit))
}

var workspaceLeases = wire.SQL("select " + leaseColumns + " from lease where workspace_id = $1::text")

// WorkspaceLeases implements scheduler.View.
func (v *view) WorkspaceLeases(_ context.Context, workspace string) (held []*rules.Held, err error) {
	err = v.query("read leases of a workspace", workspaceLeases, collect(&held, row.Pointer(leaseRow)),
		wire.Text(workspace))
	return held, err
}
