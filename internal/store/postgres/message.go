package postgres

import (
	"context"
	"maps"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	messageColumns = row.Columns(row.Message)
	insertMessages = insertInto("message", row.Message)
	dropMessages   = wire.SQL("delete from message m using (" + wire.Unnest("uii", "job, seq, keyless") + ") s" +
		" where " + wire.At("m.job", "s.job") + " and m.seq <= s.seq and (m.key is null or m.seq <= s.keyless)")
	markSeen = wire.SQL("update message m set seen = true from (" + wire.Unnest("uii", "job, seq, keyless") + ") s" +
		" where " + wire.At("m.job", "s.job") + " and m.seq <= s.seq and not m.seen")
	readKeyed    = wire.SQL("select " + messageColumns + " from message where job = $1::uuid and key = $2::text")
	readMessages = wire.SQL("select " + row.Of("m", messageColumns) + " from unnest($1::uuid[]) j(id)" +
		" cross join lateral (select * from message where message.job = j.id and not seen" +
		" order by seq limit $2::bigint) m" +
		" order by m.job, m.seq")
	readMessaged = wire.SQL("select job, max(seq) from message where not seen group by job")
)

// SaveMessages implements scheduler.Tx.
func (t *tx) SaveMessages(_ context.Context, ms []rules.Message) error {
	for i := range ms {
		raise(&t.store.origin.fence, ms[i].Seq)
	}
	return save(t, "save messages", insertMessages, ms, row.Message)
}

// DropMessages implements scheduler.Tx.
func (t *tx) DropMessages(_ context.Context, all []scheduler.Seen) error {
	if len(all) == 0 || t.err != nil {
		return t.err
	}
	r := t.scratch.Reset()
	for _, seen := range all {
		r.Next()
		r.ID(seen.Job.UUID)
		r.Int(seen.UpTo)
		r.Int(seen.Keyless)
	}
	if err := t.write("drop messages", wire.Step{Stmt: dropMessages}, r.Params()...); err != nil {
		return err
	}
	return t.write("mark messages as seen", wire.Step{Stmt: markSeen}, r.Params()...)
}

// KeyedMessage implements scheduler.Tx.
func (t *tx) KeyedMessage(_ context.Context, id lessor.JobID, key string) (*rules.Message, error) {
	var found []rules.Message
	err := t.query("read a message by its key", readKeyed, collect(&found, row.Message), wire.ID(id.UUID), []byte(key))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Messages implements scheduler.View.
func (v *view) Messages(
	_ context.Context, ids []lessor.JobID, limit int,
) (map[lessor.JobID][]lessor.Message, error) {
	all := make(map[lessor.JobID][]lessor.Message, len(ids))
	if len(ids) == 0 || limit <= 0 || v.err != nil {
		return all, v.err
	}
	for _, id := range ids { // two heartbeats of a lease may name its job
		all[id] = nil
	}
	err := v.query("read messages", readMessages, func(r *wire.Row) error {
		var m rules.Message
		row.Message(decode(r), &m)
		all[m.Job] = append(all[m.Job], m.Message)
		return nil
	}, wire.IDs(slices.Collect(maps.Keys(all))), wire.Limit(limit))
	return all, err
}

// EachMessaged implements scheduler.View.
func (v *view) EachMessaged(_ context.Context, fn func(lessor.JobID, int64) error) error {
	return v.query("read jobs with messages", readMessaged, func(r *wire.Row) error {
		return fn(lessor.JobID{UUID: r.ID()}, r.Int())
	})
}
