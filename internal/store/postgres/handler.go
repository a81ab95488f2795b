package postgres

import (
	"context"

	"lessor"
	"lessor/internal/store/postgres/wire"
)

var (
	readHandlers = wire.SQL("select id, schema, updated_at from handler order by id")
	saveHandler  = wire.SQL("insert into handler (id, schema, updated_at) values ($1::text, $2::bytea, $3::bigint)" +
		" on conflict (id) do update set schema = excluded.schema, updated_at = excluded.updated_at")
	dropHandler = wire.SQL("delete from handler where id = $1::text")
)

// Handlers implements scheduler.KernelView.
func (v *view) Handlers(context.Context) (hs []lessor.Handler, err error) {
	err = v.query("read handlers", readHandlers, func(r *wire.Row) error {
		hs = append(hs, lessor.Handler{HandlerID: r.Text(), Schema: r.Bytes(), UpdatedAt: r.Instant()})
		return nil
	})
	return hs, err
}

// SaveHandler implements scheduler.KernelTx.
func (t *tx) SaveHandler(_ context.Context, h lessor.Handler) error {
	if h.Schema == nil {
		return t.write("remove handler", wire.Step{Stmt: dropHandler}, wire.Text(h.HandlerID))
	}
	return t.write("save handler", wire.Step{Stmt: saveHandler}, wire.Text(h.HandlerID), append([]byte{}, h.Schema...), wire.Instant(h.UpdatedAt))
}
