package sqlite

import (
	"context"

	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

var (
	keyColumns = row.Columns(row.Key)
	claimKey   = insertOne("insert into idempotency", keyColumns) + " on conflict do nothing"
	readKey    = "select " + keyColumns + " from idempotency where tenant = ? and key = ?"
)

const unclaimKey = "delete from idempotency where tenant = ? and key = ?"

// Claim implements scheduler.Tx.
func (t *tx) Claim(_ context.Context, claims []scheduler.Claim) (map[scheduler.Key]scheduler.KeyHolder, error) {
	holders := make(map[scheduler.Key]scheduler.KeyHolder)
	err := t.do("claim idempotency keys", func() error {
		for i := range claims {
			key := claims[i].Key
			if err := query(t.conn, claimKey, func(a *args) { row.Key(row.Write(a), &claims[i]) }, nil); err != nil {
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

// Unclaim implements scheduler.Tx.
func (t *tx) Unclaim(_ context.Context, keys []scheduler.Key) error {
	return t.run("give idempotency keys back", unclaimKey, len(keys), func(i int, a *args) { bindKey(a, keys[i]) })
}
