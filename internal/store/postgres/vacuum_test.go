package postgres

import (
	"fmt"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestNodeVacuumsAfterEndedLeases: the node does not wait for the server's own vacuum, which runs once a minute.
func TestNodeVacuumsAfterEndedLeases(t *testing.T) {
	url := pool.Database(t)
	const leases = 100
	s := openAt(t, Config{URL: url, VacuumAfter: leases})
	endAll := func(ids []lessor.LeaseID) {
		err := s.Update(t.Context(), func(tx scheduler.Tx) error {
			held, err := tx.Leases(t.Context(), ids)
			var ends []scheduler.Move
			for _, h := range held {
				n, bad := rules.Conclude(h, rules.End{Outcome: rules.OutcomeCompleted}, rules.Retries{}, tx.Now(), 0)
				if bad != nil {
					return bad
				}
				ends = append(ends, scheduler.Move{
					From: rules.Leased, To: n.Place, Turn: n.Turn, Held: h,
					Done: n.Done,
				})
			}
			if err == nil {
				err = tx.Move(t.Context(), ends)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	vacuums := func() (n int) {
		readAll(t, url, "select vacuum_count from pg_stat_user_tables where relname = 'lease'", func(values [][]byte) {
			_, _ = fmt.Sscan(string(values[0]), &n)
		})
		return n
	}
	ids := leaseJobs(t, s, leases)
	endAll(ids[1:])
	s.vacuumTurn <- struct{}{} // waits for a vacuum that is under way
	if n := vacuums(); n != 0 {
		t.Errorf("%d vacuums after %d ended leases, want none yet", n, leases-1)
	}
	<-s.vacuumTurn
	endAll(ids[:1])
	for deadline := time.Now().Add(10 * time.Second); vacuums() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no vacuum in 10 s after %d ended leases, want one", leases)
		}
	}
}
