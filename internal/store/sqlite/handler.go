package sqlite

import (
	"context"

	"lessor"
)

const readHandlers = "select id, schema, updated_at from handler order by id"

// Handlers implements scheduler.KernelView.
func (v *view) Handlers(ctx context.Context) (hs []lessor.Handler, err error) {
	err = query(v.conn, readHandlers, nil, func(r *row) error {
		hs = append(hs, lessor.Handler{HandlerID: r.text(), Schema: r.blob(), UpdatedAt: r.instant()})
		return nil
	})
	return hs, readFault(ctx, "read handlers", err)
}

// SaveHandler implements scheduler.KernelTx.
func (t *tx) SaveHandler(_ context.Context, h lessor.Handler) error {
	return t.do("save handler", func() error {
		if h.Schema == nil {
			return query(t.conn, "delete from handler where id = ?", func(a *args) { a.text(h.HandlerID) }, nil)
		}
		return query(t.conn, "replace into handler (id, schema, updated_at) values (?, ?, ?)", func(a *args) {
			a.text(h.HandlerID)
			a.blob(h.Schema)
			a.instant(h.UpdatedAt)
		}, nil)
	})
}
