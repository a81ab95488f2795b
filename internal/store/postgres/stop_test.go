package postgres

import (
	"errors"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestStoppedNodeLosesItsLocks stops a node inside a transaction, while it holds a lock or the gate. Another node
// continues after the idle time-out, and the stopped one changes nothing when it wakes up.
func TestStoppedNodeLosesItsLocks(t *testing.T) {
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
			// This prepares the statements of the other node.
			if err := b.Update(t.Context(),
				func(tx scheduler.Tx) error {
					return errors.Join(c.take(tx), errRefused)
				}); !errors.Is(err, errRefused) {
				t.Fatal(err)
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
			if err := <-result; !errors.Is(err, scheduler.ErrDisconnected) {
				t.Errorf("the node that had stopped: got error %v, want %v", err, scheduler.ErrDisconnected)
			}
			if hasSetting(t, a, "stopped") {
				t.Error("the change of the node that had stopped is stored, want it lost")
			}
			if err := write(t.Context(), a, "awake", nil); err != nil {
				t.Errorf("a later write of the node that had stopped: %v", err)
			}
		})
	}
}

var errRefused = errors.New("the test rolls back")

// TestRefusedValueIsABadCall gives the server values that it refuses. The error says that the call is at fault, the
// transaction changes nothing, and the next one uses the same connection.
func TestRefusedValueIsABadCall(t *testing.T) {
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
		"a search for a text with NUL": func(tx scheduler.Tx) error {
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
			t.Errorf("%s: the next transaction: %v, on a new connection: %v; want no error on the old one", name, err,
				s.writers[0] != writer)
		}
		if hasSetting(t, s, name) {
			t.Errorf("%s: a setting of its transaction is stored, want none", name)
		}
	}
}

// TestStoreContinuesAfterALostServer cuts the connection to the server and restores it. All calls fail as unreachable,
// and then succeed without a restart.
func TestStoreContinuesAfterALostServer(t *testing.T) {
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
