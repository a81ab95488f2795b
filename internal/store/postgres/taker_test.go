package postgres

import (
	"errors"
	"sync"
	"testing"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestTakerMigrationKeepsLeases: leases from before the migration stay valid, and are found by their ids, which end
// with the seq of the job.
func TestTakerMigrationKeepsLeases(t *testing.T) {
	url := pool.Bare(t)
	migrateTo(t, url, 8)
	const turn = "fence, queued_at, attempt, max_attempts, interruptions, steps"
	for _, text := range []string{
		"insert into lane (hash, tenant, class, priority, type, is_unique, units, lock_key, definition)" +
			" values ('x', '00000000-0000-0000-0000-000000000000', 'default', 1, 'mail', false, 1, '', '')",
		"insert into lease (id, seq, job, lane, " + turn +
			", ttl_ms, max_runtime_ms, issued_at, expires_at, first_beat_at, beat_at, cancel_at, watch_until, units," +
			" reattached, tenant, worker)" +
			" values ('01990000-0000-7000-8000-000000000001', 1, '00000000-0000-0000-0000-000000000001'," +
			" 1, 7, 1, 1, 5, 0, 2, 60000, 0, 1, 60001, 0, 1, 0, 0, 1, false," +
			" '00000000-0000-0000-0000-000000000000', 'w')",
		"insert into done (seq, job, lane, " + turn +
			", granted_at, first_beat_at, ended_at, lease, state, worker, outcome, said, reason, actor, error)" +
			" values (2, '00000000-0000-0000-0000-000000000002'," +
			" 1, 7, 1, 1, 5, 0, 3, 1, 0, 2, '01990000-0000-7000-8000-000000000002'," +
			" 'completed', 'w', 'completed', 'completed', 'completed', 'w', '')",
	} {
		readAll(t, url, text, nil)
	}
	s := openAt(t, Config{URL: url})
	live := lessor.LeaseID{UUID: lessor.UUID{0x01, 0x99, 6: 0x70, 8: 0x80, 15: 1}}
	over := lessor.LeaseID{UUID: lessor.UUID{0x01, 0x99, 6: 0x70, 8: 0x80, 15: 2}}
	err := s.Update(t.Context(), func(tx scheduler.Tx) error {
		held, err := tx.Leases(t.Context(), []lessor.LeaseID{live})
		if h := held[live]; h == nil || h.Taker != "" || h.Bound {
			t.Errorf("the lease from before the migration is %+v, want it without a taker and not bound", held)
		}
		ends, err2 := tx.LeaseEnds(t.Context(), []lessor.LeaseID{over})
		if ends[over].Outcome != rules.OutcomeCompleted {
			t.Errorf("the end of the lease from before the migration is %+v, want completed", ends)
		}
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNodesHaveOneSeal starts five nodes at once on a database that has no key yet.
func TestNodesHaveOneSeal(t *testing.T) {
	url := pool.Database(t)
	readAll(t, url, "delete from setting where name = 'seal'", nil)
	var mu sync.Mutex
	seen := map[lessor.LeaseID]bool{}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			s, err := Open(t.Context(), Config{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			seen[s.Seal().LeaseID(7, [10]byte{})] = true
			mu.Unlock()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(seen) != 1 {
		t.Errorf("five nodes have %d seals, want one", len(seen))
	}
}
