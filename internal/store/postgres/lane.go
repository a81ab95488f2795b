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
)

const (
	laneColumns = "tenant, class, priority, type, is_unique, units, lock_key, definition"
	laneTypes   = "utitbitt"

	// maxLanes bounds the lanes whose owners are known without a read, about 20 MB. Every lock key has lanes of its own, so there
	// may be as many as jobs.
	maxLanes = 100_000
)

var (
	addLanes = sql("insert into lane (hash, " + laneColumns + ") " + unnestAs("y"+laneTypes, "hash, "+laneColumns) +
		" on conflict (hash) do nothing")
	keepLanes     = sql("update lane set notice = 0 where hash = any($1::bytea[]) and notice <> 0")
	findLanes     = sql("select id, " + laneColumns + " from lane where hash = any($1::bytea[])")
	readLanes     = sql("select id, " + laneColumns + " from lane order by id")
	readLanesByID = sql("select id, " + laneColumns + " from lane where id = any($1::bigint[])")
	readNoticed   = sql("select id, notice from lane where notice <> 0")
	noticeLanes   = sql("update lane set notice = $2::bigint where id = any($1::bigint[]) and notice = 0")
	dropLanes     = sql("delete from lane using unnest($1::bigint[], $2::bigint[]) as u (id, notice)" +
		" where lane.id = u.id and lane.notice = u.notice returning lane.id")
	readJobLanes = sql("select id, lane from job where id > $1::uuid order by id limit $2::bigint")
)

func bindLane(r *rows, l *rules.Lane) {
	r.id(l.Tenant.UUID)
	r.text(l.Class)
	r.int(int64(l.Priority))
	r.text(l.Type)
	r.flag(l.Unique)
	r.int(int64(l.Units))
	r.text(l.LockKey)
	r.text(l.Definition)
}

func readLane(r *row) rules.Lane {
	return rules.Lane{
		Tenant:     lessor.TenantID{UUID: r.id()},
		Class:      r.text(),
		Priority:   lessor.Priority(r.int()),
		Type:       r.text(),
		Unique:     r.flag(),
		Units:      int(r.int()),
		LockKey:    r.text(),
		Definition: r.text(),
	}
}

// laneHash is what a lane is found by. Nodes of all releases must make the same: a new field is left out while it is empty.
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

// learn registers the lanes that this transaction has not. No number is kept beyond it: a lane may go (see NoticeLanes), and the scheduler
// knows those that it uses. They are inserted in one order by all nodes: an insert waits for another
// node's of the same lane.
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
	r := t.scratch.reset()
	for i := range unknown {
		r.row()
		r.bytes(unknown[i].hash[:])
		bindLane(r, unknown[i].lane)
	}
	params := r.params()
	if err := t.write("register lanes", step{stmt: addLanes}, params...); err != nil {
		return err
	}
	if err := t.write("register lanes", step{stmt: keepLanes}, params[0]); err != nil { // waits for nobody but who removes or keeps it too
		return err
	}
	if t.lanes == nil {
		t.lanes = map[rules.Lane]rules.LaneID{}
	}
	return t.query("register lanes", findLanes, func(r *row) error {
		id, l := rules.LaneID(r.int()), readLane(r)
		t.lanes[l] = id
		t.store.owners.learn(id, &l)
		return nil
	}, params[0])
}

// EachLane implements scheduler.View, in the order of their numbers.
func (v *view) EachLane(_ context.Context, fn func(rules.LaneID, rules.Lane) error) error {
	return v.query("read lanes", readLanes, func(r *row) error {
		id, l := rules.LaneID(r.int()), readLane(r)
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
	r := v.scratch.reset()
	for _, id := range ids {
		r.row()
		r.int(int64(id))
	}
	err := v.query("read lanes", readLanesByID, func(r *row) error {
		id, l := rules.LaneID(r.int()), readLane(r)
		v.store.owners.learn(id, &l)
		lanes[id] = l
		return nil
	}, r.params()...)
	return lanes, err
}

// NoticedLanes implements scheduler.View.
func (v *view) NoticedLanes(context.Context) (map[rules.LaneID]int64, error) {
	noticed := map[rules.LaneID]int64{}
	err := v.query("read lanes", readNoticed, func(r *row) error {
		noticed[rules.LaneID(r.int())] = r.int()
		return nil
	})
	return noticed, err
}

// JobLanes implements scheduler.View.
func (v *view) JobLanes(_ context.Context, after lessor.JobID, limit int, fn func(rules.LaneID)) (last *lessor.JobID, err error) {
	err = v.query("read the lanes of jobs", readJobLanes, func(r *row) error {
		last = &lessor.JobID{UUID: r.id()}
		fn(rules.LaneID(r.int()))
		return nil
	}, uuidOf(after.UUID), limitOf(limit))
	return last, err
}

// NoticeLanes implements scheduler.Tx.
func (t *tx) NoticeLanes(_ context.Context, ids []rules.LaneID, notice int64) error {
	if len(ids) == 0 {
		return t.err
	}
	r := t.scratch.reset()
	for _, id := range slices.Sorted(slices.Values(ids)) {
		r.row()
		r.int(int64(id))
	}
	return t.write("notice lanes", step{stmt: noticeLanes}, append(r.params(), int8Of(notice))...)
}

// DropLanes implements scheduler.Tx. Who registers one of them meanwhile waits, and makes a new one; or was before, and keeps it.
func (t *tx) DropLanes(_ context.Context, notices map[rules.LaneID]int64) (gone []rules.LaneID, err error) {
	if len(notices) == 0 || t.err != nil {
		return nil, t.err
	}
	r := t.scratch.reset()
	for id, notice := range notices {
		r.row()
		r.int(int64(id))
		r.int(notice)
	}
	t.wrote = true
	err = t.query("remove lanes", dropLanes, func(r *row) error {
		gone = append(gone, rules.LaneID(r.int()))
		return nil
	}, r.params()...)
	return gone, err
}
