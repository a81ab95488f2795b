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

// fill lets the database grow by no more than the given number of pages. SQLite reports the limit like a full disk.
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

// large gives a job a payload of 100 KB.
func large(s *rules.Spec) { s.Payload = []byte(`{"x":"` + strings.Repeat("y", 100_000) + `"}`) }

func TestFullDiskRefusesWholeTransactions(t *testing.T) {
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
		t.Fatalf("a transaction that ignored the fault: %v, want ErrFull", err)
	}
	inView(t, s, func(v scheduler.View) error {
		if value, err := v.Setting(t.Context(), "stray"); value != nil || err != nil {
			t.Errorf("the setting after the fault is %q, %v; want that it was not written", value, err)
		}
		got, err := v.Specs(t.Context(), []lessor.JobID{specs[0].ID})
		if len(got) != 0 {
			t.Error("a job of a refused transaction is stored")
		}
		return err
	})
	fill(t, s, 1000)
	update(t, s, add) // with space again, the same transaction commits
	update(t, s, func(tx scheduler.Tx) error { return finish(t.Context(), tx, leaseIDs(held[1:]), completed) })
}

func inView(t testing.TB, s *Store, fn func(scheduler.View) error) {
	t.Helper()
	if err := s.View(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// testClock is a clock that the test moves.
type testClock struct {
	wall time.Time
	mono time.Duration
}

func (h *testClock) config() Config {
	h.wall = time.UnixMilli(1_700_000_000_000)
	return Config{Now: func() time.Time { return h.wall }, Mono: func() time.Duration { return h.mono }}
}

// advance lets time go by on both clocks.
func (h *testClock) advance(d time.Duration) {
	h.wall, h.mono = h.wall.Add(d), h.mono+d
}

func TestServiceBeginsAnewAfterAGapOrAClockStep(t *testing.T) {
	var clock testClock
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
	clock.advance(time.Second)
	serve(start, "after a second")
	clock.advance(1001 * time.Millisecond)
	serve(start+2001, "after more than a second in which nobody served")
	clock.wall = clock.wall.Add(time.Hour)
	serve(start+2001+3_600_000, "after a step forward")
	clock.wall = clock.wall.Add(-2 * time.Hour)
	back := lessor.At(clock.wall)
	serve(back, "after a step back")
	clock.mono += 2 * time.Second // the wall clock was set back by as much as went by
	serve(back, "after a step back that hides a gap")
	clock.advance(900 * time.Millisecond)
	update(t, s, func(tx scheduler.Tx) error { // a stall inside a transaction
		if tx.Serving().Since != back || tx.Now() != back+900 {
			t.Errorf("in an update: served since %v at %v, want since %v at %v", tx.Serving().Since, tx.Now(),
				back, back+900)
		}
		clock.advance(3 * time.Second)
		if tx.Now() != back+900 {
			t.Errorf("the time of the transaction moved to %v, want %v", tx.Now(), back+900)
		}
		return nil
	})
	serve(back+3900, "after an update that took three seconds")
}

// TestTimeOnAFullDiskIsNotServed: no heartbeat can be accepted while writes fail, so the floor is the time of
// the first write that succeeds.
func TestTimeOnAFullDiskIsNotServed(t *testing.T) {
	var clock testClock
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
		clock.advance(500 * time.Millisecond)
		fails()
	}
	inView(t, s, func(v scheduler.View) error {
		if v.Serving() != before {
			t.Errorf("serving went on to %+v while every write failed, want %+v", v.Serving(), before)
		}
		return nil
	})
	fill(t, s, 1000)
	after, err := s.Serve(t.Context(), false) // tries a write
	if err != nil {
		t.Fatal(err)
	}
	if now := lessor.At(clock.wall); after.Since != now || after.LastBeat != now {
		t.Errorf("served again since %v, last at %v; want %v for both", after.Since, after.LastBeat, now)
	}
}

// TestRefusedUpdateCountsAsServed: a transaction that fails by its caller's own error is no sign of a failing store.
func TestRefusedUpdateCountsAsServed(t *testing.T) {
	var clock testClock
	s := openAt(t, clock.config())
	start := lessor.At(clock.wall)
	for range 5 {
		clock.advance(800 * time.Millisecond)
		if err := s.Update(t.Context(), func(scheduler.Tx) error { return errEnough }); !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
	}
	if got, err := s.Serve(t.Context(), false); err != nil || got.Since != start {
		t.Errorf("served since %v, want %v (%v)", got.Since, start, err)
	}
}

func TestResultCodesBecomeFaults(t *testing.T) {
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
			t.Errorf("%v became %v with code %v, want %v with the same code", c.code, err, sqlite.ErrCode(err), c.want)
		}
	}
}

// TestTooLargeValueIsABadCall: the error tells the scheduler that one call is at fault, and not the store.
func TestTooLargeValueIsABadCall(t *testing.T) {
	s := openAt(t, Config{})
	s.writer.conn.Limit(sqlite.LimitLength, 50_000)
	err := s.Update(t.Context(), func(tx scheduler.Tx) error { return submit(t.Context(), tx, drafts(2, large)) })
	if !errors.Is(err, scheduler.ErrBadCall) {
		t.Fatalf("got %v, want ErrBadCall", err)
	}
	leased(t, s, 2)
}

// TestStoreContinuesAfterALockFromOutside: a shell holds the lock of the file. The store changes nothing, and
// continues when the shell is closed.
func TestStoreContinuesAfterALockFromOutside(t *testing.T) {
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
		t.Errorf("serving while the file is locked: %+v, %v; want %+v and ErrUnreachable", got, err, before)
	}
	if f := s.Check(t.Context()); !slices.ContainsFunc(f, func(f scheduler.Finding) bool {
		return f.Name == "writes" && !f.OK
	}) {
		t.Errorf("the findings are %+v, want one that says that writes fail", f)
	}
	if err := sqlitex.ExecuteTransient(shell, "rollback", nil); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Errorf("after the lock was released: %v", err)
	}
}

func TestCheckReportsUnsafeSynchronous(t *testing.T) {
	for synchronous, ok := range map[string]bool{"FULL": true, "OFF": false} {
		s := openAt(t, Config{Synchronous: synchronous})
		leased(t, s, 10)
		reported := false
		for _, f := range s.Check(t.Context()) {
			want := true
			switch f.Name {
			case "free space":
				continue // the machine may be short of it
			case "synchronous":
				want, reported = ok, true
			}
			if f.OK != want {
				t.Errorf("synchronous %s: %+v, want OK %v", synchronous, f, want)
			}
		}
		if !reported {
			t.Errorf("synchronous %s: no finding is about it", synchronous)
		}
	}
}
