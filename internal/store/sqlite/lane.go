package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

const (
	laneColumns = "tenant, class, priority, type, is_unique, units, lock_key, definition"
	addLane     = "insert into lane (" + laneColumns + ") values (?, ?, ?, ?, ?, ?, ?, ?)"
	findLane    = "select id, notice from lane where tenant = ? and class = ? and priority = ? and type = ? and is_unique = ?" +
		" and units = ? and lock_key = ? and definition = ?"
)

func bindLane(a *args, l *rules.Lane) {
	a.id(l.Tenant.UUID)
	a.text(l.Class)
	a.int(int64(l.Priority))
	a.text(l.Type)
	a.flag(l.Unique)
	a.int(int64(l.Units))
	a.text(l.LockKey)
	a.text(l.Definition)
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

// Lanes implements scheduler.Tx.
func (t *tx) Lanes(_ context.Context, lanes []rules.Lane) ([]rules.LaneID, error) {
	ids := make([]rules.LaneID, len(lanes))
	err := t.do("register lanes", func() error {
		for i := range lanes {
			id, err := t.lane(&lanes[i])
			if err != nil {
				return err
			}
			ids[i] = id
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

func (t *tx) lane(l *rules.Lane) (rules.LaneID, error) {
	if id, ok := t.store.lanes.ids[*l]; ok {
		return id, nil
	}
	var id rules.LaneID
	var notice int64
	err := query(t.conn, findLane, func(a *args) { bindLane(a, l) }, func(r *row) error {
		id, notice = rules.LaneID(r.int()), r.int()
		return nil
	})
	if err == nil && notice != 0 {
		err = query(t.conn, "update lane set notice = 0 where id = ?", func(a *args) { a.int(int64(id)) }, nil)
	}
	if err != nil {
		return 0, err
	}
	if id == 0 {
		bindLane(&args{stmt: t.w.addLane}, l)
		if err := exec(t.w.addLane); err != nil {
			return 0, err
		}
		id = rules.LaneID(t.conn.LastInsertRowID())
	}
	t.store.lanes.put(id, *l)
	return id, nil
}

// laneAt returns the lane with a number, which is mostly known.
func (t *tx) laneAt(id rules.LaneID) (rules.Lane, error) {
	if l := t.store.lanes.lanes[id]; l != nil {
		return *l, nil
	}
	var l rules.Lane
	err := query(t.conn, readLaneByID, func(a *args) { a.int(int64(id)) }, func(r *row) error {
		l = readLane(r)
		t.store.lanes.put(id, l)
		return nil
	})
	return l, err
}

// EachLane implements scheduler.View, in the order of their numbers.
func (v *view) EachLane(ctx context.Context, fn func(rules.LaneID, rules.Lane) error) error {
	err := query(v.conn, "select id, "+laneColumns+" from lane order by id", nil, func(r *row) error {
		return fn(rules.LaneID(r.int()), readLane(r))
	})
	return readFault(ctx, "read lanes", err)
}

const readLaneByID = "select " + laneColumns + " from lane where id = ?"

// LanesByID implements scheduler.View.
func (v *view) LanesByID(ctx context.Context, ids []rules.LaneID) (map[rules.LaneID]rules.Lane, error) {
	lanes := make(map[rules.LaneID]rules.Lane, len(ids))
	for _, id := range ids {
		err := query(v.conn, readLaneByID, func(a *args) { a.int(int64(id)) }, func(r *row) error {
			lanes[id] = readLane(r)
			return nil
		})
		if err != nil {
			return nil, readFault(ctx, "read lanes", err)
		}
	}
	return lanes, nil
}

// NoticedLanes implements scheduler.View.
func (v *view) NoticedLanes(ctx context.Context) (map[rules.LaneID]int64, error) {
	noticed := map[rules.LaneID]int64{}
	err := query(v.conn, "select id, notice from lane where notice <> 0", nil, func(r *row) error {
		noticed[rules.LaneID(r.int())] = r.int()
		return nil
	})
	return noticed, readFault(ctx, "read lanes", err)
}

// JobLanes implements scheduler.View.
func (v *view) JobLanes(ctx context.Context, after lessor.JobID, limit int, fn func(rules.LaneID)) (last *lessor.JobID, err error) {
	err = query(v.conn, "select id, lane from job where id > +? order by id limit +?", func(a *args) {
		a.id(after.UUID)
		a.int(int64(max(0, limit)))
	}, func(r *row) error {
		last = &lessor.JobID{UUID: r.id()}
		fn(rules.LaneID(r.int()))
		return nil
	})
	return last, readFault(ctx, "read the lanes of jobs", err)
}

// NoticeLanes implements scheduler.Tx.
func (t *tx) NoticeLanes(_ context.Context, ids []rules.LaneID, notice int64) error {
	if len(ids) == 0 {
		return nil
	}
	return t.do("notice lanes", func() error {
		t.store.lanes.clear() // who registers one of them ends its notice
		for _, id := range ids {
			err := query(t.conn, "update lane set notice = ? where id = ? and notice = 0", func(a *args) {
				a.int(notice)
				a.int(int64(id))
			}, nil)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// dropLane leaves the lane with the highest number: SQLite would give that number again.
const dropLane = "delete from lane where id = ? and notice = ? and id < (select max(id) from lane)"

// DropLanes implements scheduler.Tx.
func (t *tx) DropLanes(_ context.Context, notices map[rules.LaneID]int64) (gone []rules.LaneID, err error) {
	if len(notices) == 0 {
		return nil, nil
	}
	err = t.do("remove lanes", func() error {
		t.store.lanes.clear()
		for id, notice := range notices {
			err := query(t.conn, dropLane, func(a *args) {
				a.int(int64(id))
				a.int(notice)
			}, nil)
			if err != nil {
				return err
			}
			if t.conn.Changes() > 0 {
				gone = append(gone, id)
			}
		}
		return nil
	})
	return gone, err
}
