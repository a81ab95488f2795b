package sqlite

import (
	"context"

	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

var (
	keyColumns = row.Columns(row.Key)
	takeKey    = insertOne("insert into idempotency", keyColumns) + " on conflict do nothing"
	readKey    = "select " + keyColumns + " from idempotency where tenant = ? and key = ?"
)

const freeKey = "delete from idempotency where tenant = ? and key = ?"

// TakeKeys implements scheduler.Tx.
func (t *tx) TakeKeys(_ context.Context, wanted []scheduler.JobKey) (map[scheduler.Key]scheduler.KeyHolder, error) {
	holders := make(map[scheduler.Key]scheduler.KeyHolder)
	err := t.do("take idempotency keys", func() error {
		for i := range wanted {
			key := wanted[i].Key
			if err := query(t.conn, takeKey, func(a *args) { row.Key(row.Write(a), &wanted[i]) }, nil); err != nil {
				return err
			}
			held, err := find(t.conn, readKey, func(a *args) { bindKey(a, key) }, row.Key)
			if err != nil {
				return err
			}
			holders[key] = held.KeyHolder
		}
		return nil
	})
	return holders, err
}

func bindKey(a *args, k scheduler.Key) {
	a.ID(k.Tenant.UUID)
	a.Text(k.Key)
}

// FreeKeys implements scheduler.Tx.
func (t *tx) FreeKeys(_ context.Context, keys []scheduler.Key) error {
	return t.run("free idempotency keys", freeKey, len(keys), func(i int, a *args) { bindKey(a, keys[i]) })
}
