package memory

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// lane is a row of the registry of lanes.
type lane struct {
	rules.Lane
	notice int64 // 0 = none
}

// laneKey tells a lane from all others.
func laneKey(l *rules.Lane) key {
	var b strings.Builder
	for _, s := range []string{l.Class, l.Type, l.LockKey, l.Definition} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		b.Write(n[:])
		b.WriteString(s)
	}
	m := 2 * int64(l.Units)
	if l.Unique {
		m++
	}
	return key{text: b.String(), id: l.Tenant.UUID, n: int64(l.Priority), m: m}
}

// Lanes implements scheduler.Tx. All nodes register in one order, because one waits for another's of the same lane.
func (t *tx) Lanes(_ context.Context, lanes []rules.Lane) ([]rules.LaneID, error) {
	ids := make([]rules.LaneID, len(lanes))
	err := t.do("register lanes", func() error {
		keys := make(map[key]*rules.Lane, len(lanes))
		for i := range lanes {
			keys[laneKey(&lanes[i])] = &lanes[i]
		}
		for _, k := range slices.SortedFunc(maps.Keys(keys), key.compare) {
			if err := t.registerLane(k, keys[k]); err != nil {
				return err
			}
		}
		for i := range lanes {
			ids[i], _ = t.state.laneIDs.get(laneKey(&lanes[i]))
		}
		return nil
	})
	return ids, err
}

// registerLane makes sure that a lane is there and under no notice. It waits for a node that makes or removes the lane,
// but for one that puts it on notice only if that has been committed.
func (t *tx) registerLane(k key, l *rules.Lane) error {
	n := len(t.locks)
	if err := t.acquire(lock{"lane", k}); err != nil {
		return err
	}
	id, known := t.state.laneIDs.get(k)
	if !known {
		t.db.laneIDs++
		id = rules.LaneID(t.db.laneIDs)
		t.write(func(s *tables) {
			s.laneIDs.put(k, id)
			s.lanes.put(key{n: int64(id)}, lane{Lane: *l})
		})
		return nil
	}
	t.release(t.locks[n:]...)
	t.locks = t.locks[:n]
	if row, _ := t.state.lanes.get(key{n: int64(id)}); row.notice == 0 {
		return nil
	}
	row, err := t.lockLane(id)
	switch {
	case err != nil:
		return err
	case row == nil:
		return fmt.Errorf("%w: a lane is not there", scheduler.ErrAgain)
	}
	t.noticeLane(id, row, 0)
	return nil
}

// lockLane locks a lane for a change of its notice; nil if there is none.
func (t *tx) lockLane(id rules.LaneID) (*lane, error) {
	k := key{n: int64(id)}
	if err := t.acquire(lock{"notice", k}); err != nil {
		return nil, err
	}
	if row, ok := t.state.lanes.get(k); ok {
		return &row, nil
	}
	return nil, nil
}

func (t *tx) noticeLane(id rules.LaneID, row *lane, notice int64) {
	row.notice = notice
	t.write(func(s *tables) { s.lanes.put(key{n: int64(id)}, *row) })
}

// NoticeLanes implements scheduler.Tx.
func (t *tx) NoticeLanes(_ context.Context, ids []rules.LaneID, notice int64) error {
	return t.do("notice lanes", func() error {
		for _, id := range slices.Sorted(slices.Values(ids)) {
			row, err := t.lockLane(id)
			if err != nil {
				return err
			}
			if row != nil && row.notice == 0 {
				t.noticeLane(id, row, notice)
			}
		}
		return nil
	})
}

// DropLanes implements scheduler.Tx.
func (t *tx) DropLanes(_ context.Context, notices map[rules.LaneID]int64) (gone []rules.LaneID, err error) {
	err = t.do("remove lanes", func() error {
		for _, id := range slices.Sorted(maps.Keys(notices)) {
			row, err := t.lockLane(id)
			if err != nil {
				return err
			}
			if row == nil || row.notice != notices[id] {
				continue
			}
			k := laneKey(&row.Lane)
			if err := t.acquire(lock{"lane", k}); err != nil {
				return err
			}
			gone = append(gone, id)
			t.write(func(s *tables) {
				s.lanes.drop(key{n: int64(id)})
				s.laneIDs.drop(k)
			})
		}
		return nil
	})
	return gone, err
}

// EachLane implements scheduler.View, in the order of their numbers.
func (v *view) EachLane(_ context.Context, fn func(rules.LaneID, rules.Lane) error) error {
	s := v.read("read lanes")
	for k, l := range s.lanes.all() {
		if err := fn(rules.LaneID(k.n), l.Lane); err != nil {
			return err
		}
	}
	return v.err
}

// LanesByID implements scheduler.View.
func (v *view) LanesByID(_ context.Context, ids []rules.LaneID) (map[rules.LaneID]rules.Lane, error) {
	lanes := make(map[rules.LaneID]rules.Lane, len(ids))
	s := v.read("read lanes")
	for _, id := range ids {
		if l, ok := s.lanes.get(key{n: int64(id)}); ok {
			lanes[id] = l.Lane
		}
	}
	return lanes, v.err
}

// NoticedLanes implements scheduler.View.
func (v *view) NoticedLanes(context.Context) (map[rules.LaneID]int64, error) {
	s := v.read("read lanes")
	noticed := map[rules.LaneID]int64{}
	for k, l := range s.lanes.all() {
		if l.notice != 0 {
			noticed[rules.LaneID(k.n)] = l.notice
		}
	}
	return noticed, v.err
}

// JobLanes implements scheduler.View.
func (v *view) JobLanes(
	_ context.Context, after lessor.JobID, limit int, fn func(rules.LaneID),
) (last *lessor.JobID, err error) {
	s := v.read("read the lanes of jobs")
	for k, j := range s.jobs.from(key{id: after.UUID, n: 1}) {
		if limit--; limit < 0 {
			break
		}
		last = &lessor.JobID{UUID: k.id}
		fn(j.Spec.LaneID)
	}
	return last, v.err
}
