package postgres

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// inParts makes a busy node send a transaction in parts: the heartbeat of ids[0], and what besides does. It returns the
// error of the commit.
func inParts(t *testing.T, s *Store, ids []lessor.LeaseID, besides func(scheduler.Tx) error) error {
	t.Helper()
	s.prepareBoth(t, ids, nil)
	for range 20 {
		s.alone(t, ids)
		wait, err := s.beatAlone(t, ids[:1], besides)
		switch {
		case errors.Is(err, errNotAlone):
			continue
		case err != nil:
			t.Fatal(err)
		case s.flights[0].order == 0:
			t.Error("the transaction has no order lock")
		}
		return wait()
	}
	t.Fatal("20 times, the node did not believe that it is alone")
	return nil
}

// countLeaseChangers counts the sessions that have changed a lease and not ended their transactions.
func countLeaseChangers(t *testing.T, url string) (n int) {
	t.Helper()
	readAll(t, url, "select distinct pid from pg_locks where relation = 'lease'::regclass"+
		" and mode = 'RowExclusiveLock'", func([][]byte) { n++ })
	return n
}

// await returns when a condition holds, and fails the test if it does not within a minute.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen in a minute: %s", what)
		}
	}
}

// TestPartsAreSentBeforeTheLastIsDecided: the server works on the first part of a transaction before the node has
// decided the last.
func TestPartsAreSentBeforeTheLastIsDecided(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, patient(url))
	err := inParts(t, s, leaseJobs(t, s, busyFrom), func(scheduler.Tx) error {
		await(t, "it has changed a lease", func() bool { return countLeaseChangers(t, url) == 1 })
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFaultInAnEarlyPartChangesNothing: a transaction of which any part fails changes nothing and returns the cause.
func TestFaultInAnEarlyPartChangesNothing(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, patient(url))
	ids := leaseJobs(t, s, busyFrom)
	version := func() (v string) {
		readAll(t, url, "select xmin from lease where id = '"+ids[0].String()+"'",
			func(row [][]byte) { v = string(row[0]) })
		return v
	}
	var was string
	err := inParts(t, s, ids, func(tx scheduler.Tx) error {
		was = version()
		// No such lease exists.
		return tx.SaveLeases(t.Context(), []*rules.Held{{ID: lessor.LeaseID{UUID: lessor.UUID{1}}}})
	})
	if !errors.Is(err, scheduler.ErrAgain) { // another node may have ended the lease
		t.Errorf("got error %v, want %v", err, scheduler.ErrAgain)
	}
	if is := version(); is != was || countLeaseChangers(t, url) > 0 {
		t.Errorf("the lease was changed by transaction %s, want %s; %d transactions are open, want none", is, was,
			countLeaseChangers(t, url))
	}
	if err := write(t.Context(), s, "after", nil); err != nil {
		t.Errorf("a transaction after the fault: %v", err)
	}
}

// TestFaultReadBeforeTheCommitIsRepeated: a lease has ended on another node. This node reads the fault of an early
// part because it must prepare a statement behind it. The caller must repeat, as when the fault is read later.
func TestFaultReadBeforeTheCommitIsRepeated(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, patient(url))
	ids := leaseJobs(t, s, busyFrom)
	s.prepareBoth(t, ids, nil)
	undisturbed(t, func() (time.Duration, error) {
		start := time.Now()
		s.alone(t, ids)
		readAll(t, url, "delete from lease where id = '"+ids[0].String()+"'", nil)
		wait, err := s.beatAlone(t, ids[:1], func(tx scheduler.Tx) error {
			return tx.Note(t.Context(), []rules.Note{{Job: lessor.JobID{UUID: uuidAt(1, 1)}}})
		})
		ids = ids[1:] // for the next try
		if err == nil {
			err = fmt.Errorf("the transaction was sent and ended with %w, want it refused before", wait())
		} else if errors.Is(err, scheduler.ErrAgain) {
			err = nil
		}
		return time.Since(start), err
	})
}

// TestIdleTimeoutEndsATransactionBetweenParts: a node that stops inside a transaction holds its locks no longer than
// the idle time-out.
func TestIdleTimeoutEndsATransactionBetweenParts(t *testing.T) {
	url := pool.Database(t)
	cfg := patient(url)
	cfg.IdleTimeout = 3 * time.Second // long enough to see the changed lease before
	s := openAt(t, cfg)
	err := inParts(t, s, leaseJobs(t, s, busyFrom), func(scheduler.Tx) error {
		await(t, "it has changed a lease", func() bool { return countLeaseChangers(t, url) == 1 })
		await(t, "the server has ended the transaction", func() bool { return countLeaseChangers(t, url) == 0 })
		return nil
	})
	if !errors.Is(err, scheduler.ErrDisconnected) {
		t.Errorf("got error %v, want %v", err, scheduler.ErrDisconnected)
	}
}

// TestSoleNodeGivesWayToTheHolderOfTheGate: another node holds the gate and waits for a row that this node has locked.
// The node that believes it is alone must give up after its gate time-out, and repeat.
func TestSoleNodeGivesWayToTheHolderOfTheGate(t *testing.T) {
	url := pool.Database(t)
	// Keep the server from ending the deadlock.
	readAll(t, url, "do $$ begin execute "+
		"format('alter database %I set deadlock_timeout = 60000', current_database()); end $$", nil)
	cfg := patient(url)
	cfg.GateTimeout = 2 * time.Second // long enough to see it wait
	s := openAt(t, cfg)
	ids := leaseJobs(t, s, 2)
	s.prepareBoth(t, ids, nil)
	undisturbed(t, func() (time.Duration, error) {
		other := newHolder(t, url, takeGate)
		start := time.Now()
		s.alone(t, ids)
		other.take()
		wait, err := s.beatAlone(t, ids, nil)
		if err != nil {
			other.give()
			return time.Since(start), err
		}
		awaitWaiting(t, url, 1)
		other.exec("set local statement_timeout = '10s'; select 1 from lease" +
			" where id = '" + ids[0].String() + "' for update")
		other.give()
		if err := wait(); !errors.Is(err, scheduler.ErrAgain) {
			return time.Since(start), fmt.Errorf("got error %w, want %w", err, scheduler.ErrAgain)
		}
		return time.Since(start), nil
	})
}

// TestBusyNodeBeginsAtOnce: a busy node also sends a transaction in parts if no commit is pending, so that the next
// transaction need not wait for the answer.
func TestBusyNodeBeginsAtOnce(t *testing.T) {
	s := openAt(t, patient(pool.Database(t)))
	ids := leaseJobs(t, s, busyFrom)
	for _, c := range []struct {
		leases int
		held   bool
	}{{1, false}, {busyFrom, true}} {
		s.prepareBoth(t, ids[:c.leases], nil)
		undisturbed(t, func() (time.Duration, error) {
			start := time.Now()
			s.alone(t, ids[:c.leases])
			wait, err := s.beatAlone(t, ids[:c.leases], nil)
			if err != nil {
				return time.Since(start), err
			}
			if got := s.flights[0].held; got != c.held {
				t.Errorf("after transactions with %d leases the order lock is held: %v, want %v", c.leases, got, c.held)
			}
			err = wait()
			return time.Since(start), err
		})
	}
}
