package memory

import (
	"context"
	"slices"

	"lessor/internal/scheduler"
)

func keyOf(k scheduler.Key) key { return key{text: k.Key, id: k.Tenant.UUID} }

// TakeKeys implements scheduler.Tx. All nodes take keys in one order, because a node waits for another that
// takes the same key.
func (t *tx) TakeKeys(_ context.Context, wanted []scheduler.JobKey) (map[scheduler.Key]scheduler.KeyHolder, error) {
	holders := make(map[scheduler.Key]scheduler.KeyHolder)
	sorted := slices.Clone(wanted)
	slices.SortStableFunc(sorted, func(a, b scheduler.JobKey) int { return keyOf(a.Key).compare(keyOf(b.Key)) })
	err := t.do("take idempotency keys", func() error {
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

// FreeKeys implements scheduler.Tx.
func (t *tx) FreeKeys(_ context.Context, keys []scheduler.Key) error {
	return save(t, "free idempotency keys", "key", keys, func(k *scheduler.Key) key { return keyOf(*k) },
		func(s *tables, k *scheduler.Key) { s.keys.drop(keyOf(*k)) })
}
