package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/internal/pgtest"
	"lessor/internal/scheduler"
)

// TestChangesAreNotAheadOfTheClock publishes a change while a node reads changes in the round trip that takes the
// gate. The node must read the clock after the changes.
func TestChangesAreNotAheadOfTheClock(t *testing.T) {
	url := pool.Database(t)
	s, other := openAt(t, patient(url)), openAt(t, patient(url))
	if err := write(t.Context(), other, "x", nil); err != nil { // which opens the stream of the other node
		t.Fatal(err)
	}
	p := scheduler.Position{}
	follow(t, s, p)
	changes := func() (changes []scheduler.Change, now lessor.Instant) {
		err := s.Update(t.Context(), func(tx scheduler.Tx) (err error) {
			if err = tx.Gate(t.Context()); err == nil {
				changes, err = tx.Changes(t.Context(), p)
				now = tx.Now()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return changes, now
	}
	changes() // prepares the statements, for which the table must not be locked
	h := newHolder(t, url, "begin; lock table change")
	h.take()
	var published sync.WaitGroup
	published.Go(func() {
		for waiting := 0; waiting == 0; {
			readAll(t, url, "select 1 from pg_locks where relation = 'change'::regclass and not granted",
				func([][]byte) { waiting++ })
		}
		h.exec(fmt.Sprintf("select pg_sleep(0.01); insert into change (stream, n, at, void, data) select %d, 2, now,"+
			" false, convert_to(now::text, 'UTF8') from (select %s as now) c; commit",
			other.stream.id.Load(), clockMillis))
	})
	all, now := changes()
	published.Wait()
	if len(all) != 1 {
		t.Fatalf("%d changes were read, want one: %v", len(all), all)
	}
	at, err := strconv.ParseInt(string(all[0].Data), 10, 64)
	if err != nil || now < lessor.Instant(at) {
		t.Errorf("the time of the transaction is %v, want no earlier than its change of %v (%v)", now,
			lessor.Instant(at), err)
	}
}

// TestLockGivesUpWhileTheClockStandsStill: another node holds a job, and the clock of the database stands still. The
// node pauses by its own clock, so it holds the gate for a few pauses only.
func TestLockGivesUpWhileTheClockStandsStill(t *testing.T) {
	db, err := pgtest.Start(t.Context(), pgtest.Options{FakeClock: pgtest.FakeClock(t)})
	must(t, err)
	t.Cleanup(func() { must(t, db.Stop()) })
	url := db.URL("postgres")
	s := &stage{T: t, store: openAt(t, Config{URL: url})}
	job := s.job("")
	h := newHolder(t, url, "begin; select from queue for update")
	h.take()
	must(t, db.Freeze())
	t.Cleanup(func() { must(t, db.Step(0)) }) // a server with a frozen clock does not stop
	locked := make(chan error, 1)
	go func() {
		locked <- s.store.Update(t.Context(), func(tx scheduler.Tx) error {
			_, err := tx.Lock(t.Context(), []lessor.JobID{job.ID})
			return err
		})
	}()
	select {
	case err := <-locked:
		if !errors.Is(err, scheduler.ErrAgain) {
			t.Errorf("a job that another node holds: %v, want %v", err, scheduler.ErrAgain)
		}
	case <-time.After(10 * time.Second):
		t.Error("the gate is held after ten seconds")
	}
}

// TestGivenUpSessionWaitsForNoLock: the time-outs of the server do not fire, as when its clock was set back. A node
// that gives up on an answer ends the wait of its session, which may hold locks that other nodes wait for.
func TestGivenUpSessionWaitsForNoLock(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url, StatementTimeout: time.Hour, LockTimeout: time.Hour})
	must(t, write(t.Context(), s, "warm", nil))
	impatient(s)
	h := newHolder(t, url, fmt.Sprintf("begin; select pg_advisory_xact_lock(%d)", gateKey))
	h.take()
	err := s.Update(t.Context(), func(tx scheduler.Tx) error {
		return errors.Join(tx.SaveSetting(t.Context(), "x", nil), tx.Gate(t.Context()))
	})
	if !errors.Is(err, scheduler.ErrUnreachable) {
		t.Errorf("a gate that stays locked: %v, want %v", err, scheduler.ErrUnreachable)
	}
	await(t, "no session waits", func() bool { return countWaiting(t, url) == 0 })
	h.give()
}

// TestReckonedTimeIsNotBehindAView: a transaction that reckons its time is not earlier than a view that was read before
// it.
func TestReckonedTimeIsNotBehindAView(t *testing.T) {
	s := openAt(t, patient(pool.Database(t)))
	undisturbed(t, func() (time.Duration, error) {
		start := time.Now()
		s.alone(t, nil)
		s.reckoned.at = s.reckoned.at.Add(-100 * time.Millisecond) // as after an answer that came late
		var read lessor.Instant
		err := s.View(t.Context(), func(v scheduler.View) error {
			read = v.Now()
			_, err := v.Changes(t.Context(), nil)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		wait, err := s.Send(t.Context(), scheduler.Sole, func(sent scheduler.Tx) error {
			if !sent.(*tx).guard {
				return errNotAlone
			}
			if now := sent.Now(); now < read {
				t.Errorf("the reckoned time is %v, want no earlier than %v of the view", now, read)
			}
			return nil
		})
		if err == nil {
			err = wait()
		}
		return time.Since(start), err
	})
}
