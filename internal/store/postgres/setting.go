package postgres

import (
	"context"

	"lessor/internal/store/postgres/wire"
)

var (
	readSetting = wire.SQL("select value from setting where name = $1::text")
	saveSetting = wire.SQL("insert into setting (name, value) values ($1::text, $2::bytea) on conflict (name) do update set value = excluded.value")
	dropSetting = wire.SQL("delete from setting where name = $1::text")
)

// Setting implements scheduler.View.
func (v *view) Setting(_ context.Context, name string) (value []byte, err error) {
	err = v.query("read setting", readSetting, func(r *wire.Row) error {
		value = r.Bytes()
		return nil
	}, wire.Text(name))
	return value, err
}

// SaveSetting implements scheduler.Tx.
func (t *tx) SaveSetting(_ context.Context, name string, value []byte) error {
	if value == nil {
		return t.write("remove setting", wire.Step{Stmt: dropSetting}, wire.Text(name))
	}
	return t.write("save setting", wire.Step{Stmt: saveSetting}, wire.Text(name), append([]byte{}, value...))
}
