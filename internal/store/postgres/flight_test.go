package postgres

import (
	"errors"
	"testing"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestNextSeesTheOneOnItsWay begins a transaction before the one before is known to be durable: what it reads was committed, and the
// changes of both have their numbers.
func TestNextSeesTheOneOnItsWay(t *testing.T) {
	url := pool.Database(t)
	s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
	ctx := t.Context()
	var waits []func() error
	for n := byte(1); n <= 20; n++ {
		wait, err := s.Send(ctx, func(tx scheduler.Tx) error {
			was, err := tx.Setting(ctx, "n")
			if n > 1 && (len(was) != 1 || was[0] != n-1) {
				t.Errorf("transaction %d sees %v, want what the one before wrote", n, was)
			}
			return errors.Join(err, tx.SaveSetting(ctx, "n", []byte{n}), tx.Publish(ctx, []byte{n}))
		})
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, wait)
	}
	for _, wait := range waits {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}
	if got := follow(t, other, scheduler.Position{}); len(got) != len(waits) {
		t.Errorf("%d changes were published, want %d", len(got), len(waits))
	}
}

// TestFailureTakesTheNextWithIt: what was begun on top of a transaction that fails comes to nothing, and what follows goes on.
func TestFailureTakesTheNextWithIt(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	ctx := t.Context()
	send := func(name string, fn func(tx scheduler.Tx) error) (func() error, error) {
		return s.Send(ctx, func(tx scheduler.Tx) error {
			return errors.Join(tx.SaveSetting(ctx, name, []byte("x")), fn(tx))
		})
	}
	wait, err := send("first", func(tx scheduler.Tx) error {
		return tx.Move(ctx, []scheduler.Move{{From: rules.InQueue, To: rules.Delayed, Turn: rules.Turn{Seq: 1}}}) // there is none
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = send("second", func(scheduler.Tx) error { return nil })
	if !errors.Is(err, scheduler.ErrAgain) {
		t.Errorf("behind a failure: got error %v, want %v", err, scheduler.ErrAgain)
	}
	if err := wait(); !errors.Is(err, scheduler.ErrMoved) {
		t.Errorf("the failure: got error %v, want %v", err, scheduler.ErrMoved)
	}
	wait, err = send("third", func(scheduler.Tx) error { return nil })
	if err == nil {
		err = wait()
	}
	if err != nil || has(t, s, "first") || has(t, s, "second") || !has(t, s, "third") {
		t.Errorf("after it: %v; there are first %v, second %v, third %v", err, has(t, s, "first"), has(t, s, "second"), has(t, s, "third"))
	}
}

// beat sends a heartbeat of leases, and says whether the store took itself to be alone.
func (s *Store) beat(t *testing.T, ids []lessor.LeaseID) (wait func() error, alone bool) {
	t.Helper()
	wait, err := s.Send(t.Context(), func(sent scheduler.Tx) error {
		alone = sent.(*tx).guard
		held, err := sent.Leases(t.Context(), ids)
		if err != nil {
			return err
		}
		var saved []*rules.Held
		for _, h := range held {
			if err := rules.Beat(h, "w1", 0, sent.Now(), sent.Serving()); err != nil {
				return err
			}
			saved = append(saved, h)
		}
		return errors.Join(sent.SaveLeases(t.Context(), saved), sent.Gate(t.Context()))
	})
	if err != nil {
		t.Fatal(err)
	}
	return wait, alone
}

// alone makes a store one that takes itself to be alone: it has followed, serves, and knows the time.
func (s *Store) alone(t *testing.T, ids []lessor.LeaseID) {
	t.Helper()
	follow(t, s, scheduler.Position{})
	if _, err := s.Serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), func(tx scheduler.Tx) error {
		_, seqs := tx.Seqs(t.Context(), 1)
		_, leases := tx.Leases(t.Context(), ids)
		return errors.Join(seqs, leases)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestGuard has another node ask a lease to be cancelled, before and while a node that takes itself to be alone beats it: the beat, which
// does not know of it, comes to nothing.
func TestGuard(t *testing.T) {
	for _, c := range []string{"nobody else", "before", "while"} {
		t.Run(c, func(t *testing.T) {
			url := pool.Database(t)
			s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
			ids := hold(t, s, 3)
			cancel := func(between func()) {
				err := other.Update(t.Context(), func(tx scheduler.Tx) error {
					held, err := tx.Leases(t.Context(), ids[:1])
					if err != nil {
						return err
					}
					between()
					held[ids[0]].CancelAt = 1
					return tx.SaveLeases(t.Context(), []*rules.Held{held[ids[0]]})
				})
				if err != nil {
					t.Error(err)
				}
			}
			s.alone(t, ids)
			var wait func() error
			beat := func() {
				var alone bool
				if wait, alone = s.beat(t, ids); !alone {
					t.Fatal("the store does not take itself to be alone")
				}
			}
			switch c {
			case "nobody else":
				beat()
			case "before":
				cancel(func() {})
				beat()
			case "while":
				cancel(beat)
			}
			err := wait()
			if want := c != "nobody else"; errors.Is(err, scheduler.ErrAgain) != want || !want && err != nil {
				t.Errorf("got error %v, want to be told to repeat: %v", err, want)
			}
			cancelled := 0
			readAll(t, url, "select 1 from lease where cancel_at = 1", func([][]byte) { cancelled++ })
			if c != "nobody else" && cancelled != 1 {
				t.Error("the other node's change is lost")
			}
		})
	}
}

// TestAloneIsOneRoundTrip counts what is written to the network.
func TestAloneIsOneRoundTrip(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	var w wire
	w.through(s)
	ids := hold(t, s, 3)
	for range 3 { // everything is prepared then, on both connections
		s.alone(t, ids)
		first, _ := s.beat(t, ids)
		second, _ := s.beat(t, ids)
		if err := errors.Join(first(), second()); err != nil {
			t.Fatal(err)
		}
	}
	before := w.count()
	wait, alone := s.beat(t, ids)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if got := w.count() - before; got != 1 || !alone {
		t.Errorf("a heartbeat made %d round trips, want 1; alone: %v", got, alone)
	}
}
