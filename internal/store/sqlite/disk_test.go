package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// fill limits the database to the pages that it has and more new ones. SQLite reports the limit like a full disk.
func fill(t *testing.T, s *Store, more int64) {
	t.Helper()
	if err := s.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.leave()
	pages, err := count(s.writer.conn, "pragma page_count")
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(s.writer.conn, fmt.Sprintf("pragma max_page_count = %d", pages+more),
		nil); err != nil {
		t.Fatal(err)
	}
}

func large(s *rules.Spec) { s.Payload = []byte(`{"x":"` + strings.Repeat("y", 100_000) + `"}`) }

func TestFullDisk(t *testing.T) {
	s := openAt(t, Config{})
	held := leased(t, s, 3)
	fill(t, s, 0)
	specs := drafts(5, large)
	add := func(tx scheduler.Tx) error {
		if err := finish(t.Context(), tx, leaseIDs(held[:1]), completed); err != nil {
			return err
		}
		return submit(t.Context(), tx, specs)
	}
	for range 3 {
		if err := s.Update(t.Context(), add); !errors.Is(err, scheduler.ErrFull) {
			t.Fatalf("on a full disk: %v, want ErrFull", err)
		}
	}
	err := s.Update(t.Context(), func(tx scheduler.Tx) error {
		// fn ignores the error. SQLite has rolled back, and would commit each further statement by itself.
		_ = submit(t.Context(), tx, specs)
		_ = tx.SaveSetting(t.Context(), "stray", []byte("x"))
		return nil
	})
	if !errors.Is(err, scheduler.ErrFull) {
		t.Fatalf("a fault that fn ignored: %v, want ErrFull", err)
	}
	inView(t, s, func(v scheduler.View) error {
		if value, err := v.Setting(t.Context(), "stray"); value != nil || err != nil {
			t.Errorf("something was written outside the transaction: %q, %v", value, err)
		}
		got, err := v.Specs(t.Context(), []lessor.JobID{specs[0].ID})
		if len(got) != 0 {
			t.Error("a job was half submitted")
		}
		return err
	})
	fill(t, s, 1000)
	update(t, s, add) // space again: the same batch goes through
	update(t, s, func(tx scheduler.Tx) error { return finish(t.Context(), tx, leaseIDs(held[1:]), completed) })
}

func inView(t testing.TB, s *Store, fn func(scheduler.View) error) {
	t.Helper()
	if err := s.View(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// hands is a clock that the test sets.
type hands struct {
	wall time.Time
	mono time.Duration
}

func (h *hands) config() Config {
	h.wall = time.UnixMilli(1_700_000_000_000)
	return Config{Now: func() time.Time { return h.wall }, Mono: func() time.Duration { return h.mono }}
}

func (h *hands) pass(d time.Duration) {
	h.wall, h.mono = h.wall.Add(d), h.mono+d
}

func TestServe(t *testing.T) {
	var clock hands
	s := openAt(t, clock.config())
	start := lessor.At(clock.wall)
	serve := func(want lessor.Instant, when string) {
		t.Helper()
		got, err := s.Serve(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		if got.Since != want || got.LastBeat != lessor.At(clock.wall) {
			t.Errorf("%s: served since %v, last at %v; want since %v, last now", when, got.Since, got.LastBeat, want)
		}
	}
	serve(start, "at the start")
	clock.pass(time.Second)
	serve(start, "after a second")
	clock.pass(1001 * time.Millisecond)
	serve(start+2001, "after more than a second in which nobody served")
	clock.wall = clock.wall.Add(time.Hour)
	serve(start+2001+3_600_000, "after a step forward")
	clock.wall = clock.wall.Add(-2 * time.Hour)
	back := lessor.At(clock.wall)
	serve(back, "after a step back")
	clock.mono += 2 * time.Second // the wall clock stood still, or was set back while time went by
	serve(back, "after a step of the clock that hides a gap")
	clock.pass(900 * time.Millisecond)
	update(t, s, func(tx scheduler.Tx) error { // a stall inside a transaction
		if tx.Serving().Since != back || tx.Now() != back+900 {
			t.Errorf("in an update: served since %v at %v", tx.Serving().Since, tx.Now())
		}
		clock.pass(3 * time.Second)
		if tx.Now() != back+900 {
			t.Error("the clock of a transaction moved")
		}
		return nil
	})
	serve(back+3900, "after an update that took three seconds")
}

// TestFullDiskIsNotServed: no heartbeat can be accepted while writes fail, so the floor is the first write that
// succeeds.
func TestFullDiskIsNotServed(t *testing.T) {
	var clock hands
	s := openAt(t, clock.config())
	leased(t, s, 1)
	fill(t, s, 0)
	specs := drafts(5, large)
	fails := func() {
		t.Helper()
		if err := s.Update(t.Context(), func(tx scheduler.Tx) error {
			return submit(t.Context(), tx, specs)
		}); !errors.Is(err, scheduler.ErrFull) {
			t.Fatalf("on a full disk: %v, want ErrFull", err)
		}
	}
	before, err := s.Serve(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		clock.pass(500 * time.Millisecond)
		fails()
	}
	inView(t, s, func(v scheduler.View) error {
		if v.Serving() != before {
			t.Errorf("serving went on to %+v while every write failed", v.Serving())
		}
		return nil
	})
	fill(t, s, 1000)
	after, err := s.Serve(t.Context(), false) // writes, to see whether it can
	if err != nil {
		t.Fatal(err)
	}
	if now := lessor.At(clock.wall); after.Since != now || after.LastBeat != now {
		t.Errorf("served again since %v, last at %v; want now, %v", after.Since, after.LastBeat, now)
	}
}

// TestRefusedUpdateIsServed: a caller that ends its own transaction says nothing about the store.
func TestRefusedUpdateIsServed(t *testing.T) {
	var clock hands
	s := openAt(t, clock.config())
	start := lessor.At(clock.wall)
	for range 5 {
		clock.pass(800 * time.Millisecond)
		if err := s.Update(t.Context(), func(scheduler.Tx) error { return errEnough }); !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
	}
	if got, err := s.Serve(t.Context(), false); err != nil || got.Since != start {
		t.Errorf("served since %v, want %v (%v)", got.Since, start, err)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		code sqlite.ResultCode
		want error
	}{
		{sqlite.ResultFull, scheduler.ErrFull},
		{sqlite.ResultIOErr, scheduler.ErrBroken},
		{sqlite.ResultIOErrFsync, scheduler.ErrBroken},
		{sqlite.ResultIOErrWrite, scheduler.ErrBroken},
		{sqlite.ResultCorrupt, scheduler.ErrBroken},
		{sqlite.ResultNotADB, scheduler.ErrBroken},
		{sqlite.ResultConstraintUnique, scheduler.ErrBadCall},
		{sqlite.ResultTooBig, scheduler.ErrBadCall},
		{sqlite.ResultMismatch, scheduler.ErrBadCall},
		{sqlite.ResultReadOnly, scheduler.ErrUnreachable},
		{sqlite.ResultCantOpen, scheduler.ErrUnreachable},
		{sqlite.ResultBusy, scheduler.ErrUnreachable},
	} {
		err := fault("try", c.code.ToError())
		if !errors.Is(err, c.want) || sqlite.ErrCode(err) != c.code {
			t.Errorf("%v: %v is not %v, or has lost its code", c.code, err, c.want)
		}
	}
}

// TestTooLargeValueIsABadCall: one call's value fails its batch alone.
func TestTooLargeValueIsABadCall(t *testing.T) {
	s := openAt(t, Config{})
	s.writer.conn.Limit(sqlite.LimitLength, 50_000)
	err := s.Update(t.Context(), func(tx scheduler.Tx) error { return submit(t.Context(), tx, drafts(2, large)) })
	if !errors.Is(err, scheduler.ErrBadCall) {
		t.Fatalf("got %v, want ErrBadCall", err)
	}
	leased(t, s, 2)
}

// TestFileLockedFromOutside: a shell holds the lock of the file. Nothing is changed, and the store continues when the
// shell is closed.
func TestFileLockedFromOutside(t *testing.T) {
	s := openAt(t, Config{})
	held := leased(t, s, 1)
	s.writer.conn.SetBusyTimeout(time.Millisecond)
	shell, err := sqlite.OpenConn(s.path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	if err := sqlitex.ExecuteTransient(shell, "begin immediate", nil); err != nil {
		t.Fatal(err)
	}
	end := func() error {
		return s.Update(t.Context(), func(tx scheduler.Tx) error {
			return finish(t.Context(), tx, leaseIDs(held), completed)
		})
	}
	if err := end(); !errors.Is(err, scheduler.ErrUnreachable) {
		t.Errorf("while the file is locked: %v, want ErrUnreachable", err)
	}
	before := s.clock.known()
	if got, err := s.Serve(t.Context(), false); !errors.Is(err, scheduler.ErrUnreachable) || got != before {
		t.Errorf("no heartbeat was possible, and it served: %+v after %+v, %v", got, before, err)
	}
	if f := s.Check(t.Context()); !slices.ContainsFunc(f, func(f scheduler.Finding) bool {
		return f.Name == "writes" && !f.OK
	}) {
		t.Errorf("the check does not see that writes fail: %+v", f)
	}
	if err := sqlitex.ExecuteTransient(shell, "rollback", nil); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for synchronous, ok := range map[string]bool{"FULL": true, "OFF": false} {
		s := openAt(t, Config{Synchronous: synchronous})
		leased(t, s, 10)
		for _, f := range s.Check(t.Context()) {
			want := f.Name != "synchronous" || ok
			if f.Name != "free space" && f.OK != want { // which the machine may be short of
				t.Errorf("synchronous %s: %+v, want ok: %v", synchronous, f, want)
			}
		}
	}
}
