package postgres

import "context"

var (
	readSetting = sql("select value from setting where name = $1::text")
	saveSetting = sql("insert into setting (name, value) values ($1::text, $2::bytea) on conflict (name) do update set value = excluded.value")
	dropSetting = sql("delete from setting where name = $1::text")
)

// Setting implements scheduler.View.
func (v *view) Setting(_ context.Context, name string) (value []byte, err error) {
	err = v.query("read setting", readSetting, func(r *row) error {
		value = r.bytes()
		return nil
	}, textOf(name))
	return value, err
}

// SaveSetting implements scheduler.Tx.
func (t *tx) SaveSetting(_ context.Context, name string, value []byte) error {
	if value == nil {
		return t.write("remove setting", step{stmt: dropSetting}, textOf(name))
	}
	return t.write("save setting", step{stmt: saveSetting}, textOf(name), append([]byte{}, value...))
}
