package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/row"
)

// maxLanes bounds the lanes known without a read, about 40 MB. Every lock key has lanes of its own, so there may be as
// many as jobs.
const maxLanes = 100_000

var (
	laneColumns  = row.Columns(row.Lane)
	addLane      = insertOne("insert into lane", laneColumns)
	readLaneByID = "select " + laneColumns + " from lane where id = ?"
)

const (
	findLane = "select id, notice from lane where tenant = ? and class = ? and priority = ? and type = ?" +
		" and is_unique = ? and units = ? and lock_key = ? and definition = ?"
	// dropLane leaves the lane with the highest number: SQLite would give that number again.
	dropLane = "delete from lane where id = ? and notice = ? and id < (select max(id) from lane)"
)

// laneCache holds recently read or registered lanes: by content only those that were registered, so that they are not
// on notice, and by number all.
type laneCache struct {
	ids   map[rules.Lane]rules.LaneID
	lanes map[rules.LaneID]*rules.Lane
}

func newLaneCache() *laneCache {
	return &laneCache{ids: map[rules.Lane]rules.LaneID{}, lanes: map[rules.LaneID]*rules.Lane{}}
}

func (c *laneCache) put(id rules.LaneID, l rules.Lane) {
	if len(c.lanes) >= maxLanes {
		c.clear()
	}
	c.lanes[id] = &l
}

func (c *laneCache) register(id rules.LaneID, l rules.Lane) {
	c.put(id, l)
	c.ids[l] = id
}

func (c *laneCache) clear() {
	clear(c.ids)
	clear(c.lanes)
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
	err := query(t.conn, findLane, func(a *args) { row.Lane(row.Write(a), l) }, func(r *result) error {
		id, notice = rules.LaneID(r.Int()), r.Int()
		return nil
	})
	if err == nil && notice != 0 {
		err = query(t.conn, "update lane set notice = 0 where id = ?", func(a *args) { a.Int(int64(id)) }, nil)
	}
	if err != nil {
		return 0, err
	}
	if id == 0 {
		row.Lane(row.Write(&args{stmt: t.w.addLane}), l)
		if err := exec(t.w.addLane); err != nil {
			return 0, err
		}
		id = rules.LaneID(t.conn.LastInsertRowID())
	}
	t.store.lanes.register(id, *l)
	return id, nil
}

// laneAt returns the lane with a number, mostly from the cache.
func (t *tx) laneAt(id rules.LaneID) (rules.Lane, error) {
	if l := t.store.lanes.lanes[id]; l != nil {
		return *l, nil
	}
	l, err := t.readLane(id)
	if l == nil || err != nil {
		return rules.Lane{}, err
	}
	t.store.lanes.put(id, *l)
	return *l, nil
}

// readLane returns nil for a lane that is not there.
func (v *view) readLane(id rules.LaneID) (*rules.Lane, error) {
	return find(v.conn, readLaneByID, func(a *args) { a.Int(int64(id)) }, row.Lane)
}

// EachLane implements scheduler.View, in the order of their numbers.
func (v *view) EachLane(ctx context.Context, fn func(rules.LaneID, rules.Lane) error) error {
	err := query(v.conn, "select id, "+laneColumns+" from lane order by id", nil, func(r *result) error {
		id, l := rules.LaneID(r.Int()), rules.Lane{}
		row.Lane(r.codec, &l)
		return fn(id, l)
	})
	return readFault(ctx, "read lanes", err)
}

// LanesByID implements scheduler.View.
func (v *view) LanesByID(ctx context.Context, ids []rules.LaneID) (map[rules.LaneID]rules.Lane, error) {
	lanes := make(map[rules.LaneID]rules.Lane, len(ids))
	for _, id := range ids {
		l, err := v.readLane(id)
		if err != nil {
			return nil, readFault(ctx, "read lanes", err)
		}
		if l != nil {
			lanes[id] = *l
		}
	}
	return lanes, nil
}

// NoticedLanes implements scheduler.View.
func (v *view) NoticedLanes(ctx context.Context) (map[rules.LaneID]int64, error) {
	noticed := map[rules.LaneID]int64{}
	err := query(v.conn, "select id, notice from lane where notice <> 0", nil, func(r *result) error {
		noticed[rules.LaneID(r.Int())] = r.Int()
		return nil
	})
	return noticed, readFault(ctx, "read lanes", err)
}

// JobLanes implements scheduler.View.
func (v *view) JobLanes(
	ctx context.Context, after lessor.JobID, limit int, fn func(rules.LaneID),
) (last *lessor.JobID, err error) {
	err = query(v.conn, "select id, lane from job where id > +? order by id limit +?", func(a *args) {
		a.ID(after.UUID)
		a.limit(limit)
	}, func(r *result) error {
		last = &lessor.JobID{UUID: r.ID()}
		fn(rules.LaneID(r.Int()))
		return nil
	})
	return last, readFault(ctx, "read the lanes of jobs", err)
}

// NoticeLanes implements scheduler.Tx. The cache forgets them, so that registering one of them ends its notice.
func (t *tx) NoticeLanes(_ context.Context, ids []rules.LaneID, notice int64) error {
	if len(ids) > 0 {
		t.store.lanes.clear()
	}
	text := "update lane set notice = ? where id = ? and notice = 0"
	return t.run("notice lanes", text, len(ids), func(i int, a *args) {
		a.Int(notice)
		a.Int(int64(ids[i]))
	})
}

// DropLanes implements scheduler.Tx.
func (t *tx) DropLanes(_ context.Context, notices map[rules.LaneID]int64) (gone []rules.LaneID, err error) {
	if len(notices) == 0 {
		return nil, nil
	}
	err = t.do("remove lanes", func() error {
		t.store.lanes.clear()
		for id, notice := range notices {
			err := query(t.conn, dropLane, func(a *args) {
				a.Int(int64(id))
				a.Int(notice)
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
