package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

var (
	messageColumns = row.Columns(row.Message)
	insertMessage  = insertOne("insert into message", messageColumns)
	readMessages   = "select " + messageColumns + " from message where job = ? and seen = 0 order by seq limit +?"
	readKeyed      = "select " + messageColumns + " from message where job = ? and key = ?"
)

// SaveMessages implements scheduler.Tx.
func (t *tx) SaveMessages(_ context.Context, ms []rules.Message) error {
	return t.do("save messages", func() error {
		for i := range ms {
			err := query(t.conn, insertMessage, func(a *args) { row.Message(row.Write(a), &ms[i]) }, nil)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// DropMessages implements scheduler.Tx.
func (t *tx) DropMessages(_ context.Context, all []scheduler.Seen) error {
	return t.do("drop messages", func() error {
		for _, seen := range all {
			err := query(t.conn, "delete from message where job = ? and seq <= ? and (key is null or seq <= ?)",
				func(a *args) {
					a.ID(seen.Job.UUID)
					a.Int(seen.UpTo)
					a.Int(seen.Keyless)
				}, nil)
			if err != nil {
				return err
			}
			err = query(t.conn, "update message set seen = 1 where job = ? and seq <= ? and seen = 0", func(a *args) {
				a.ID(seen.Job.UUID)
				a.Int(seen.UpTo)
			}, nil)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// KeyedMessage implements scheduler.Tx.
func (t *tx) KeyedMessage(_ context.Context, id lessor.JobID, key string) (m *rules.Message, err error) {
	return m, t.do("read a message by its key", func() error {
		m, err = find(t.conn, readKeyed, func(a *args) {
			a.ID(id.UUID)
			a.Text(key)
		}, row.Message)
		return err
	})
}

// Messages implements scheduler.View.
func (v *view) Messages(
	ctx context.Context, ids []lessor.JobID, limit int,
) (map[lessor.JobID][]lessor.Message, error) {
	all := make(map[lessor.JobID][]lessor.Message, len(ids))
	for _, id := range ids {
		ms, err := collect(v.conn, readMessages, func(a *args) {
			a.ID(id.UUID)
			a.limit(limit)
		}, row.Message)
		if err != nil {
			return nil, readFault(ctx, "read messages", err)
		}
		all[id] = nil
		for _, m := range ms {
			all[id] = append(all[id], m.Message)
		}
	}
	return all, nil
}

// EachMessaged implements scheduler.View.
func (v *view) EachMessaged(ctx context.Context, fn func(lessor.JobID, int64) error) error {
	err := query(v.conn, "select job, max(seq) from message where seen = 0 group by job", nil, func(r *result) error {
		return fn(lessor.JobID{UUID: r.ID()}, r.Int())
	})
	return readFault(ctx, "read jobs with messages", err)
}
