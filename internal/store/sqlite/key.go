package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
)

const (
	keyColumns = "tenant, key, job, body_hash"
	claimKey   = "insert into idempotency (" + keyColumns + ") values (?, ?, ?, ?) on conflict do nothing"
	readKey    = "select job, body_hash from idempotency where tenant = ? and key = ?"
	unclaimKey = "delete from idempotency where tenant = ? and key = ?"
)

// Claim implements scheduler.Tx.
func (t *tx) Claim(_ context.Context, claims []scheduler.Claim) (map[scheduler.Key]scheduler.KeyHolder, error) {
	holders := make(map[scheduler.Key]scheduler.KeyHolder)
	err := t.do("claim idempotency keys", func() error {
		for _, c := range claims {
			if err := t.claim(c); err != nil {
				return err
			}
			holder, err := t.keyHolder(c.Key)
			if err != nil {
				return err
			}
			holders[c.Key] = holder
		}
		return nil
	})
	return holders, err
}

func (t *tx) claim(c scheduler.Claim) error {
	return query(t.conn, claimKey,
		func(a *args) {
			a.id(c.Tenant.UUID)
			a.text(c.Key.Key)
			a.id(c.Job.UUID)
			a.blob(c.BodyHash[:])
		}, nil)
}

func (t *tx) keyHolder(k scheduler.Key) (h scheduler.KeyHolder, err error) {
	err = query(t.conn, readKey,
		func(a *args) {
			a.id(k.Tenant.UUID)
			a.text(k.Key)
		},
		func(r *row) error {
			h.Job = lessor.JobID{UUID: r.id()}
			copy(h.BodyHash[:], r.blob())
			return nil
		})
	return h, err
}

// Unclaim implements scheduler.Tx.
func (t *tx) Unclaim(_ context.Context, keys []scheduler.Key) error {
	return t.do("give idempotency keys back", func() error {
		for _, k := range keys {
			err := query(t.conn, unclaimKey, func(a *args) {
				a.id(k.Tenant.UUID)
				a.text(k.Key)
			}, nil)
			if err != nil {
				return err
			}
		}
		return nil
	})
}
