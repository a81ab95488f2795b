package sqlite

import (
	"context"
)

const (
	saveSetting = "insert into setting (name, value) values (?, ?) on conflict (name) do update set value = excluded.value"
	dropSetting = "delete from setting where name = ?"
)

// Setting implements scheduler.View.
func (v *view) Setting(ctx context.Context, name string) (value []byte, err error) {
	err = query(v.conn, "select value from setting where name = ?",
		func(a *args) { a.text(name) },
		func(r *row) error {
			value = r.blob()
			return nil
		})
	return value, readFault(ctx, "read setting", err)
}

// SaveSetting implements scheduler.Tx.
func (t *tx) SaveSetting(_ context.Context, name string, value []byte) error {
	return t.do("save setting", func() error {
		if value == nil {
			return query(t.conn, dropSetting, func(a *args) { a.text(name) }, nil)
		}
		return t.w.setting(name, value)
	})
}

func (w *writer) setting(name string, value []byte) error {
	a := args{stmt: w.saveSetting}
	a.text(name)
	a.blob(value)
	return exec(w.saveSetting)
}
