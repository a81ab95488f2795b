package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

const (
	// maxLanes bounds the lanes whose owners are known without a read, about 20 MB. Every lock key has lanes of its
	// own, so there may be as many as jobs.
	maxLanes = 100_000
)

var (
	laneColumns = row.Columns(row.Lane)
	addLanes    = wire.SQL("insert into lane (hash, " + laneColumns + ") " +
		wire.Unnest("y"+row.Kinds(row.Lane), "hash, "+laneColumns) + " on conflict (hash) do nothing")
	keepLanes     = wire.SQL("update lane set notice = 0 where hash = any($1::bytea[]) and notice <> 0")
	findLanes     = wire.SQL("select id, " + laneColumns + " from lane where hash = any($1::bytea[])")
	readLanes     = wire.SQL("select id, " + laneColumns + " from lane order by id")
	readLanesByID = wire.SQL("select id, " + laneColumns + " from lane where id = any($1::bigint[])")
	readNoticed   = wire.SQL("select id, notice from lane where notice <> 0")
	noticeLanes   = wire.SQL("update lane set notice = $2::bigint where id = any($1::bigint[]) and notice = 0")
	dropLanes     = wire.SQL("delete from lane using unnest($1::bigint[], $2::bigint[]) as u (id, notice)" +
		" where lane.id = u.id and lane.notice = u.notice returning lane.id")
	readJobLanes = wire.SQL("select id, lane from job where id > $1::uuid order by id limit $2::bigint")
)

// readLane reads the number of a lane and the lane.
func readLane(r *wire.Row) (id rules.LaneID, l rules.Lane) {
	id = rules.LaneID(r.Int())
	row.Lane(decode(r), &l)
	return id, l
}

// laneHash is the key of a lane. Nodes of all releases must compute the same: a new field is left out while it is
// empty.
func laneHash(l *rules.Lane) [32]byte {
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(string(l.Tenant.UUID[:]))
	text(l.Class)
	b = binary.AppendVarint(b, int64(l.Priority))
	text(l.Type)
	if l.Unique {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.AppendVarint(b, int64(l.Units))
	text(l.LockKey)
	text(l.Definition)
	return sha256.Sum256(b)
}

// Lanes implements scheduler.Tx.
func (t *tx) Lanes(_ context.Context, lanes []rules.Lane) ([]rules.LaneID, error) {
	if t.err != nil {
		return nil, t.err
	}
	if err := t.learn(lanes); err != nil {
		return nil, err
	}
	ids := make([]rules.LaneID, len(lanes))
	for i, l := range lanes {
		id, ok := t.lanes[l]
		if !ok {
			return nil, fmt.Errorf("register lanes: %w: a lane is not there", scheduler.ErrAgain)
		}
		ids[i] = id
	}
	return ids, nil
}

// learn registers the lanes that this transaction has not. No number is kept beyond it: a lane may go (see
// NoticeLanes), and the scheduler knows those that it uses. All nodes insert in one order, because an insert waits for
// another node that inserts the same lane.
func (t *tx) learn(lanes []rules.Lane) error {
	type hashed struct {
		hash [32]byte
		lane *rules.Lane
	}
	var unknown []hashed
	for i := range lanes {
		if _, ok := t.lanes[lanes[i]]; !ok {
			unknown = append(unknown, hashed{laneHash(&lanes[i]), &lanes[i]})
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.SortFunc(unknown, func(a, b hashed) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	unknown = slices.CompactFunc(unknown, func(a, b hashed) bool { return a.hash == b.hash })
	r := t.scratch.Reset()
	c := encode(r)
	for i := range unknown {
		r.Next()
		r.Bytes(unknown[i].hash[:])
		row.Lane(c, unknown[i].lane)
	}
	params := r.Params()
	if err := t.write("register lanes", wire.Step{Stmt: addLanes}, params...); err != nil {
		return err
	}
	// This waits only for a node that removes or keeps one of these lanes too.
	if err := t.write("register lanes", wire.Step{Stmt: keepLanes}, params[0]); err != nil {
		return err
	}
	if t.lanes == nil {
		t.lanes = map[rules.Lane]rules.LaneID{}
	}
	return t.query("register lanes", findLanes, func(r *wire.Row) error {
		id, l := readLane(r)
		t.lanes[l] = id
		t.store.owners.learn(id, &l)
		return nil
	}, params[0])
}

// EachLane implements scheduler.View, in the order of their numbers.
func (v *view) EachLane(_ context.Context, fn func(rules.LaneID, rules.Lane) error) error {
	return v.query("read lanes", readLanes, func(r *wire.Row) error {
		id, l := readLane(r)
		v.store.owners.learn(id, &l)
		return fn(id, l)
	})
}

// LanesByID implements scheduler.View.
func (v *view) LanesByID(_ context.Context, ids []rules.LaneID) (map[rules.LaneID]rules.Lane, error) {
	lanes := make(map[rules.LaneID]rules.Lane, len(ids))
	if len(ids) == 0 {
		return lanes, v.err
	}
	r := v.scratch.Reset()
	for _, id := range ids {
		r.Next()
		r.Int(int64(id))
	}
	err := v.query("read lanes", readLanesByID, func(r *wire.Row) error {
		id, l := readLane(r)
		v.store.owners.learn(id, &l)
		lanes[id] = l
		return nil
	}, r.Params()...)
	return lanes, err
}

// NoticedLanes implements scheduler.View.
func (v *view) NoticedLanes(context.Context) (map[rules.LaneID]int64, error) {
	noticed := map[rules.LaneID]int64{}
	err := v.query("read lanes", readNoticed, func(r *wire.Row) error {
		noticed[rules.LaneID(r.Int())] = r.Int()
		return nil
	})
	return noticed, err
}

// JobLanes implements scheduler.View.
func (v *view) JobLanes(
	_ context.Context, after lessor.JobID, limit int, fn func(rules.LaneID),
) (last *lessor.JobID, err error) {
	err = v.query("read the lanes of jobs", readJobLanes, func(r *wire.Row) error {
		last = &lessor.JobID{UUID: r.ID()}
		fn(rules.LaneID(r.Int()))
		return nil
	}, wire.ID(after.UUID), wire.Limit(limit))
	return last, err
}

// NoticeLanes implements scheduler.Tx.
func (t *tx) NoticeLanes(_ context.Context, ids []rules.LaneID, notice int64) error {
	if len(ids) == 0 {
		return t.err
	}
	r := t.scratch.Reset()
	for _, id := range slices.Sorted(slices.Values(ids)) {
		r.Next()
		r.Int(int64(id))
	}
	return t.write("notice lanes", wire.Step{Stmt: noticeLanes}, append(r.Params(), wire.Int8(notice))...)
}

// DropLanes implements scheduler.Tx. A node that registers one of them at the same time waits and makes a new one, or
// comes first and keeps it.
func (t *tx) DropLanes(_ context.Context, notices map[rules.LaneID]int64) (gone []rules.LaneID, err error) {
	if len(notices) == 0 || t.err != nil {
		return nil, t.err
	}
	r := t.scratch.Reset()
	for id, notice := range notices {
		r.Next()
		r.Int(int64(id))
		r.Int(notice)
	}
	t.wrote = true
	err = t.query("remove lanes", dropLanes, func(r *wire.Row) error {
		gone = append(gone, rules.LaneID(r.Int()))
		return nil
	}, r.Params()...)
	return gone, err
}
