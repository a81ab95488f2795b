package postgres

import (
	"context"

	"lessor"
)

var (
	readHandlers = sql("select id, schema, updated_at from handler order by id")
	saveHandler  = sql("insert into handler (id, schema, updated_at) values ($1::text, $2::bytea, $3::bigint)" +
		" on conflict (id) do update set schema = excluded.schema, updated_at = excluded.updated_at")
	dropHandler = sql("delete from handler where id = $1::text")
)

// Handlers implements scheduler.KernelView.
func (v *view) Handlers(context.Context) (hs []lessor.Handler, err error) {
	err = v.query("read handlers", readHandlers, func(r *row) error {
		hs = append(hs, lessor.Handler{HandlerID: r.text(), Schema: r.bytes(), UpdatedAt: r.instant()})
		return nil
	})
	return hs, err
}

// SaveHandler implements scheduler.KernelTx.
func (t *tx) SaveHandler(_ context.Context, h lessor.Handler) error {
	if h.Schema == nil {
		return t.write("remove handler", step{stmt: dropHandler}, textOf(h.HandlerID))
	}
	return t.write("save handler", step{stmt: saveHandler}, textOf(h.HandlerID), append([]byte{}, h.Schema...), instantOf(h.UpdatedAt))
}
