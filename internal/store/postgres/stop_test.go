package postgres

import (
	"errors"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestStoppedNode stops a node inside a transaction, with locks and with the gate: another node goes on within the idle
// time-out, and the one that stopped changes nothing when it wakes up.
func TestStoppedNode(t *testing.T) {
	for _, c := range []struct {
		name  string
		take  func(scheduler.Tx) error
		limit time.Duration
	}{
		{"with the gate", func(tx scheduler.Tx) error { return tx.Gate(t.Context()) }, 250 * time.Millisecond},
		{"with a key", func(tx scheduler.Tx) error {
			_, err := tx.TakeKeys(t.Context(), []scheduler.JobKey{{Key: scheduler.Key{Key: "k"}}})
			return err
		}, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := pool.Database(t)
			a, b := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
			if err := b.Update(t.Context(),
				func(tx scheduler.Tx) error {
					return errors.Join(c.take(tx), errRefused)
				}); !errors.Is(err, errRefused) {
				t.Fatal(err) // everything is prepared now
			}
			stopped, wake, result := make(chan bool), make(chan bool), make(chan error)
			go func() {
				result <- a.Update(t.Context(), func(tx scheduler.Tx) error {
					if err := errors.Join(c.take(tx), tx.SaveSetting(t.Context(), "stopped", []byte("x"))); err != nil {
						return err
					}
					close(stopped)
					<-wake
					return nil
				})
			}()
			<-stopped
			start := time.Now()
			if err := b.Update(t.Context(), c.take); err != nil {
				t.Errorf("the other node: %v", err)
			}
			const slack = time.Second // a busy machine
			if took := time.Since(start); took < c.limit/2 || took > c.limit+slack {
				t.Errorf("the other node waited %v, want about %v", took, c.limit)
			}
			close(wake)
			if err := <-result; !errors.Is(err, scheduler.ErrUnreachable) {
				t.Errorf("the node that had stopped: got error %v, want %v", err, scheduler.ErrUnreachable)
			}
			if has(t, a, "stopped") {
				t.Error("the node that had stopped changed something")
			}
			if err := write(t.Context(), a, "awake", nil); err != nil {
				t.Errorf("the node that had stopped goes on: %v", err)
			}
		})
	}
}

var errRefused = errors.New("the test wants no commit")

// TestOneBadCall gives the server values that it refuses: each is the fault of its call alone.
func TestOneBadCall(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	ctx := t.Context()
	for name, call := range map[string]func(scheduler.Tx) error{
		"a text with NUL": func(tx scheduler.Tx) error {
			return tx.Note(ctx, []rules.Note{{Actor: "a\x00b"}})
		},
		"a text that is not UTF-8": func(tx scheduler.Tx) error {
			return tx.Note(ctx, []rules.Note{{Actor: "a\xff\xfeb"}})
		},
		"a name with NUL": func(tx scheduler.Tx) error { return tx.SaveSetting(ctx, "a\x00", []byte("x")) },
		"a number too large": func(tx scheduler.Tx) error {
			return tx.Note(ctx, []rules.Note{{Attempt: 1 << 40}})
		},
		"two jobs of one id": func(tx scheduler.Tx) error {
			id := lessor.JobID{UUID: lessor.UUID{1}}
			return tx.Insert(ctx, []*rules.Spec{{ID: id}, {ID: id}})
		},
		"a text with NUL to look for": func(tx scheduler.Tx) error {
			_, err := tx.Requested(ctx, []scheduler.RequestRef{{Holder: rules.Holder{Worker: "\x00"}, RequestID: "r"}})
			return err
		},
	} {
		err := s.Update(ctx, func(tx scheduler.Tx) error {
			return errors.Join(tx.SaveSetting(ctx, name, []byte("beside it")), call(tx))
		})
		if !errors.Is(err, scheduler.ErrBadCall) {
			t.Errorf("%s: got error %v, want %v", name, err, scheduler.ErrBadCall)
		}
		writer := s.writers[0]
		if err := write(ctx, s, "after", nil); err != nil || s.writers[0] != writer {
			t.Errorf("%s: the next transaction: %v, on a new connection: %v", name, err, s.writers[0] != writer)
		}
		if has(t, s, name) {
			t.Errorf("%s: something of its transaction stayed", name)
		}
	}
}

// TestLostServer takes the server away and gives it back: everything is out of reach, and then goes on by itself.
func TestLostServer(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	var w link
	w.through(s)
	check := func(when string, want error) {
		t.Helper()
		update := write(t.Context(), s, when, nil)
		view := s.View(t.Context(), func(scheduler.View) error { return nil })
		_, serve := s.Serve(t.Context(), false)
		for what, err := range map[string]error{"update": update, "view": view, "serve": serve} {
			if !errors.Is(err, want) {
				t.Errorf("%s %s: got error %v, want %v", when, what, err, want)
			}
		}
	}
	check("before", nil)
	w.cut(true)
	readAll(t, s.cfg.URL, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"+
		" and pid <> pg_backend_pid()", nil)
	check("while it is away", scheduler.ErrUnreachable)
	check("still", scheduler.ErrUnreachable)
	w.cut(false)
	check("after", nil)
}
