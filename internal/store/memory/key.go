package memory

import (
	"context"
	"slices"

	"lessor/internal/scheduler"
)

func keyOf(k scheduler.Key) key { return key{text: k.Key, id: k.Tenant.UUID} }

// Claim implements scheduler.Tx. All nodes claim in one order, because one waits for another's claim of the same key.
func (t *tx) Claim(_ context.Context, claims []scheduler.Claim) (map[scheduler.Key]scheduler.KeyHolder, error) {
	holders := make(map[scheduler.Key]scheduler.KeyHolder)
	sorted := slices.Clone(claims)
	slices.SortStableFunc(sorted, func(a, b scheduler.Claim) int { return keyOf(a.Key).compare(keyOf(b.Key)) })
	err := t.do("claim idempotency keys", func() error {
		for _, c := range sorted {
			k := keyOf(c.Key)
			if !t.state.keys.has(k) {
				if err := t.acquire(lock{"key", k}); err != nil {
					return err
				}
			}
			held, taken := t.state.keys.get(k) // as it is after the waiting
			if !taken {
				held = c.KeyHolder
				t.write(func(s *tables) { s.keys.put(k, held) })
			}
			holders[c.Key] = held
		}
		return nil
	})
	return holders, err
}

// Unclaim implements scheduler.Tx.
func (t *tx) Unclaim(_ context.Context, keys []scheduler.Key) error {
	return save(t, "give idempotency keys back", "key", keys, func(k *scheduler.Key) key { return keyOf(*k) },
		func(s *tables, k *scheduler.Key) { s.keys.drop(keyOf(*k)) })
}
