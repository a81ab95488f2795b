package sqlite

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestStoreWorksInABubble runs a store for a day of fake time: it is opened, sent heartbeats, viewed and closed.
func TestStoreWorksInABubble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	for range 2 { // the second round opens the database of the first
		synctest.Test(t, func(t *testing.T) {
			s, err := Open(t.Context(), Config{Path: path, Synchronous: "OFF"})
			if err != nil {
				t.Fatal(err)
			}
			held := leased(t, s, 5)
			start := time.Now()
			for time.Since(start) < 24*time.Hour {
				time.Sleep(20 * time.Second)
				update(t, s, func(tx scheduler.Tx) error { return beat(t.Context(), tx, leaseIDs(held)) })
			}
			synctest.Wait()
			inView(t, s, func(v scheduler.View) error {
				got, err := v.LeaseList(t.Context(), scheduler.LeaseQuery{Limit: 1})
				if err == nil && got[0].ExpiresAt != v.Now().Add(time.Minute) {
					t.Errorf("the lease expires at %v, want a minute after %v", got[0].ExpiresAt, v.Now())
				}
				return err
			})
			// Without heartbeats the lease lapses by the store's clock, a ttl after the floor.
			time.Sleep(2 * time.Minute)
			for range 70 {
				time.Sleep(time.Second)
				if _, err := s.Serve(t.Context(), false); err != nil {
					t.Fatal(err)
				}
			}
			update(t, s, func(tx scheduler.Tx) error {
				leases, err := tx.Leases(t.Context(), leaseIDs(held[:1]))
				if err == nil && rules.Over(leases[held[0].ID], tx.Now(), tx.Serving()) != rules.OutcomeExpired {
					t.Errorf("a lease without heartbeats is not over: %+v", leases[held[0].ID])
				}
				return err
			})
			update(t, s, func(tx scheduler.Tx) error { return finish(t.Context(), tx, leaseIDs(held), completed) })
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestCloseWaitsForTheUpdateUnderWay: an update that is under way commits, and later ones are refused.
func TestCloseWaitsForTheUpdateUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "lessor.db"), Synchronous: "OFF"})
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan error, 3)
		go func() {
			results <- s.Update(t.Context(), func(tx scheduler.Tx) error {
				time.Sleep(time.Second)
				return tx.SaveSetting(t.Context(), "a", []byte("b"))
			})
		}()
		synctest.Wait()
		go func() { results <- s.Update(t.Context(), func(scheduler.Tx) error { return nil }) }()
		go func() { results <- s.Close() }()
		if err := <-results; err == nil {
			t.Error("an update began while the store was closing")
		}
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}
