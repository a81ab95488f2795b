package postgres

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// errNotAlone: the node does not believe it is alone, and so reads before it decides.
var errNotAlone = errors.New("the node does not believe it is alone")

// undisturbed runs a check that needs a node which believes it is alone. check returns how long it took since the node
// last read the clock. If that was longer than guardFor, the machine has stalled, the node may rightly believe
// otherwise, and a failed check is repeated.
func undisturbed(t *testing.T, check func() (took time.Duration, err error)) {
	t.Helper()
	for tries := 10; ; tries-- {
		took, err := check()
		if err == nil {
			return
		}
		if took < guardFor || tries == 1 {
			t.Fatal(err)
		}
		t.Logf("once more, since the machine took %v: %v", took, err)
	}
}

// alone makes a store believe that it is alone: the store reads all changes, serves, and reads the time.
func (s *Store) alone(t *testing.T, ids []lessor.LeaseID) {
	t.Helper()
	follow(t, s, scheduler.Position{})
	if _, err := s.Serve(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	s.seqs = seqs{} // the transaction takes new ones, which last longer than the reading of the clock
	if err := s.Update(t.Context(), func(tx scheduler.Tx) error {
		_, err := tx.Leases(t.Context(), ids)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// beatAlone is beat that fails if the store does not believe it is alone.
func (s *Store) beatAlone(t *testing.T, ids []lessor.LeaseID, besides func(scheduler.Tx) error) (
	wait func() error, err error,
) {
	t.Helper()
	return s.beat(t, ids, func(sent scheduler.Tx) error {
		if !sent.(*tx).guard {
			return errNotAlone
		}
		if besides == nil {
			return nil
		}
		return besides(sent)
	})
}

// beat sends the heartbeats of leases and asks for the gate, with a call of besides in between, which may be nil.
func (s *Store) beat(t *testing.T, ids []lessor.LeaseID, besides func(scheduler.Tx) error) (
	wait func() error, err error,
) {
	t.Helper()
	return s.Send(t.Context(), scheduler.Sole, func(sent scheduler.Tx) error {
		err := saveBeats(t, sent, ids)
		if err == nil && besides != nil {
			err = besides(sent)
		}
		if err != nil {
			return err
		}
		return sent.Gate(t.Context())
	})
}

// saveBeats extends leases as their heartbeats do.
func saveBeats(t *testing.T, tx scheduler.Tx, ids []lessor.LeaseID) error {
	t.Helper()
	held, err := tx.Leases(t.Context(), ids)
	if err != nil {
		return err
	}
	var saved []*rules.Held
	for _, h := range held {
		if err := rules.Beat(h, rules.Hand{Holder: h.Holder()}, 0, tx.Now(), tx.Serving()); err != nil {
			return err
		}
		saved = append(saved, h)
	}
	return tx.SaveLeases(t.Context(), saved)
}

// prepareBoth opens both connections and prepares all statements on them. Before that, a node does not send in parts
// and does not always believe it is alone.
func (s *Store) prepareBoth(t *testing.T, ids []lessor.LeaseID, besides func(scheduler.Tx) error) {
	t.Helper()
	for range 30 {
		s.alone(t, ids)
		if s.hasOrdered() {
			return
		}
		first, err := s.beat(t, ids, besides)
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.beat(t, ids, besides)
		if err == nil {
			err = second()
		}
		if err = errors.Join(first(), err); err != nil && !errors.Is(err, scheduler.ErrAgain) {
			t.Fatal(err)
		}
	}
	t.Fatal("after 30 pairs of transactions, not all statements are prepared on both connections")
}

// hasOrdered reports whether both connections have had a transaction behind another.
func (s *Store) hasOrdered() bool {
	return len(s.writers) == maxFlights && !slices.ContainsFunc(s.writers, func(c *wire.Conn) bool {
		return c.Prepared()[wire.Form{Stmt: order}] == nil
	})
}

// wantOneRoundTrip counts the writes to the network by a heartbeat of a node that believes it is alone.
func (s *Store) wantOneRoundTrip(t *testing.T, besides func(scheduler.Tx) error) {
	t.Helper()
	var w link
	w.through(s)
	ids := leaseJobs(t, s, 3)
	s.prepareBoth(t, ids, besides)
	undisturbed(t, func() (time.Duration, error) {
		start := time.Now()
		s.alone(t, ids)
		before := w.count()
		wait, err := s.beatAlone(t, ids, besides)
		if err == nil {
			err = wait()
		}
		if got := w.count() - before; err == nil && got != 1 {
			err = fmt.Errorf("%d round trips, want 1", got)
		}
		return time.Since(start), err
	})
}
