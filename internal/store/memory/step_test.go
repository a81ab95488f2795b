package memory_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
)

// script is a Stepper that follows the instructions of a test.
type script struct {
	t       testing.TB
	now     lessor.Instant
	crashAt string         // the next statement of this name crashes
	fates   []memory.Fate  // of the next commits; durable after them
	waits   []string       // what was waited for
	waiting func()         // what happens meanwhile
	points  map[string]int // how often each was reached
}

type crash struct{}

func (s *script) Reach(_, point string) {
	s.points[point]++
	if point == s.crashAt {
		s.crashAt = ""
		panic(crash{})
	}
}

func (s *script) Wait(_, what string) {
	if s.waits = append(s.waits, what); len(s.waits) > 1000 {
		s.t.Fatalf("nobody frees %s", what)
	}
	s.now += 100
	if s.waiting != nil {
		s.waiting()
	}
}

func (s *script) Fate(string) memory.Fate {
	if len(s.fates) == 0 {
		return memory.Durable
	}
	f := s.fates[0]
	s.fates = s.fates[1:]
	return f
}

// stepped returns a database that a script steps, and the stores of two nodes.
func stepped(t testing.TB) (s *script, db *memory.Database, a, b *memory.Store) {
	s = &script{t: t, now: 1_700_000_000_000, points: map[string]int{}}
	db = memory.New(memory.Options{Clock: func() lessor.Instant { return s.now }, Stepper: s})
	return s, db, db.Open("a"), db.Open("b")
}

func set(name, value string) func(scheduler.Tx) error {
	return func(tx scheduler.Tx) error {
		return errors.Join(tx.SaveSetting(context.Background(), name, []byte(value)),
			tx.Publish(context.Background(), []byte(value)))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func setting(t testing.TB, s *memory.Store, name string) (value string) {
	t.Helper()
	must(t, s.View(t.Context(), func(v scheduler.View) error {
		got, err := v.Setting(t.Context(), name)
		value = string(got)
		return err
	}))
	return value
}

// follow returns what other nodes published after p, void commits as "void", and advances p.
func follow(t testing.TB, s *memory.Store, p scheduler.Position) (published []string) {
	t.Helper()
	must(t, s.View(t.Context(), func(v scheduler.View) error {
		changes, err := v.Changes(t.Context(), p)
		for _, c := range changes {
			if c.N != p[c.Stream]+1 {
				t.Fatalf("stream %d goes from %d to %d", c.Stream, p[c.Stream], c.N)
			}
			p[c.Stream] = c.N
			if published = append(published, string(c.Data)); c.Data == nil {
				published[len(published)-1] = "void"
			}
		}
		return err
	}))
	return published
}

// TestFatesOfCommits commits once under each fate. Only what the answer says has happened, and the stream has no gap.
func TestFatesOfCommits(t *testing.T) {
	for name, c := range map[string]struct {
		fate      memory.Fate
		err       error
		kept      string
		published []string
	}{
		"durable":            {memory.Durable, nil, "new", []string{"new", "next"}},
		"refused":            {memory.Refused, scheduler.ErrUnreachable, "old", []string{"next"}},
		"full":               {memory.Full, scheduler.ErrFull, "old", []string{"next"}},
		"durable, settled":   {memory.DurableUnanswered, nil, "new", []string{"new", "next"}},
		"lost, settled":      {memory.LostUnanswered, scheduler.ErrDisconnected, "old", []string{"void", "next"}},
		"durable, not known": {memory.DurableUnknown, scheduler.ErrUnknownOutcome, "new", []string{"new", "next"}},
		"lost, not known":    {memory.LostUnknown, scheduler.ErrUnknownOutcome, "old", []string{"next"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, a, b := stepped(t)
			must(t, a.Update(t.Context(), set("x", "old")))
			p := scheduler.Position{}
			follow(t, b, p)
			s.fates = []memory.Fate{c.fate}
			if err := a.Update(t.Context(), set("x", "new")); !errors.Is(err, c.err) {
				t.Errorf("got error %v, want %v", err, c.err)
			}
			if got := setting(t, b, "x"); got != c.kept {
				t.Errorf("the setting is %s, want %s", got, c.kept)
			}
			must(t, a.Update(t.Context(), set("y", "next")))
			if got := follow(t, b, p); !slices.Equal(got, c.published) {
				t.Errorf("the other node reads %q, want %q", got, c.published)
			}
		})
	}
}

// crashes runs fn, which must crash.
func crashes(t *testing.T, fn func()) {
	t.Helper()
	defer func() {
		if v := recover(); v != (crash{}) {
			t.Fatalf("it ended with %v, want a crash", v)
		}
	}()
	fn()
}

// TestCrashFreesLocks crashes a node that holds the gate, and one between its commit and the answer.
func TestCrashFreesLocks(t *testing.T) {
	s, db, a, b := stepped(t)
	s.crashAt = "save setting"
	crashes(t, func() {
		_ = a.Update(t.Context(), func(tx scheduler.Tx) error {
			return errors.Join(tx.Gate(t.Context()), set("x", "1")(tx))
		})
	})
	a.Kill()
	must(t, b.Update(t.Context(), func(tx scheduler.Tx) error { return tx.Gate(t.Context()) }))
	if len(s.waits) != 0 {
		t.Errorf("the other node waited for %v", s.waits)
	}
	if err := a.Update(t.Context(), set("x", "2")); !errors.Is(err, scheduler.ErrUnreachable) {
		t.Errorf("a killed node writes: %v", err)
	}
	s.crashAt = "answer"
	again := db.Open("a")
	crashes(t, func() { _ = again.Update(t.Context(), set("x", "3")) })
	if got := setting(t, b, "x"); got != "3" {
		t.Errorf("the commit before the crash left %q", got)
	}
}

// TestStoppedNodeLosesItsLocks: a node that stops in a transaction keeps its locks no longer than the idle time-out,
// and cannot commit afterwards.
func TestStoppedNodeLosesItsLocks(t *testing.T) {
	s, _, a, b := stepped(t)
	err := a.Update(t.Context(), func(tx scheduler.Tx) error {
		if err := set("x", "1")(tx); err != nil {
			return err
		}
		began := s.now
		must(t, b.Update(t.Context(), set("x", "2")))
		if waited := s.now.Sub(began); waited < time.Second || waited > 2*time.Second {
			t.Errorf("the other node waited for %v, want a little more than the idle time-out", waited)
		}
		return set("x", "3")(tx)
	})
	if !errors.Is(err, scheduler.ErrDisconnected) {
		t.Errorf("got error %v, want that the database ended the transaction", err)
	}
	if got := setting(t, a, "x"); got != "2" {
		t.Errorf("the setting is %q, want that of the node that went on", got)
	}
}

// TestDeadlock: two nodes that lock in opposite orders do not wait for each other.
func TestDeadlock(t *testing.T) {
	s, db, a, b := stepped(t)
	err := a.Update(t.Context(), func(tx scheduler.Tx) error {
		if err := set("x", "1")(tx); err != nil {
			return err
		}
		return b.Update(t.Context(), func(other scheduler.Tx) error {
			if err := set("y", "1")(other); err != nil {
				return err
			}
			s.waiting = func() { // the first node, while the other waits for it
				s.waiting = nil
				if err := tx.SaveSetting(t.Context(), "y", []byte("2")); !errors.Is(err, scheduler.ErrAgain) {
					t.Errorf("got error %v, want ErrAgain", err)
				}
				s.now += 5000 // the other gives up
			}
			return set("x", "2")(other)
		})
	})
	if !errors.Is(err, scheduler.ErrAgain) {
		t.Errorf("got error %v, want ErrAgain", err)
	}
	if db.Deadlocks() != 1 {
		t.Errorf("%d deadlocks were counted, want 1", db.Deadlocks())
	}
}

// TestPendingTransactionsCommitInTheirOrder: a sole node sends a transaction behind another one. It fails with the one
// before it, and if another node has written.
func TestPendingTransactionsCommitInTheirOrder(t *testing.T) {
	for name, c := range map[string]struct {
		fate  memory.Fate
		other bool
		errs  [2]error
		want  string
	}{
		"both durable":    {want: "2"},
		"the first fails": {fate: memory.Refused, errs: [2]error{scheduler.ErrUnreachable, scheduler.ErrAgain}},
		"the first is void": {
			fate: memory.LostUnanswered, errs: [2]error{scheduler.ErrUnreachable, scheduler.ErrAgain},
		},
		"of unknown outcome": {
			fate: memory.DurableUnknown, errs: [2]error{scheduler.ErrUnknownOutcome, nil}, want: "2",
		},
		"another node wrote": {other: true, errs: [2]error{scheduler.ErrAgain, scheduler.ErrAgain}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, a, b := stepped(t)
			follow(t, a, scheduler.Position{})
			_, err := a.Serve(t.Context(), false)
			must(t, err)
			first, err := a.Send(t.Context(), scheduler.Sole, set("x", "1"))
			must(t, err)
			second, err := a.Send(t.Context(), scheduler.Sole, func(tx scheduler.Tx) error {
				got, err := tx.Setting(t.Context(), "x")
				if string(got) != "1" {
					t.Errorf("the second transaction reads %q, want what the first wrote", got)
				}
				return errors.Join(err, tx.Gate(t.Context()), set("x", "2")(tx))
			})
			must(t, err)
			if got := setting(t, b, "x"); got != "" {
				t.Errorf("another node reads %q of commits that are on their way", got)
			}
			if c.other {
				must(t, b.Update(t.Context(), set("y", "1")))
			}
			s.fates = []memory.Fate{c.fate}
			for i, wait := range []func() error{first, second} {
				if err := wait(); !errors.Is(err, c.errs[i]) {
					t.Errorf("commit %d ended with %v, want %v", i+1, err, c.errs[i])
				}
			}
			if got := setting(t, b, "x"); got != c.want {
				t.Errorf("another node reads %q, want %q", got, c.want)
			}
		})
	}
}

// TestFailureFailsTheNextTransaction: a transaction behind one that fails does not commit, whether the one before fails
// before it begins or while it is at work.
func TestFailureFailsTheNextTransaction(t *testing.T) {
	for name, during := range map[string]bool{"before": false, "during": true} {
		t.Run(name, func(t *testing.T) {
			s, _, a, b := stepped(t)
			follow(t, a, scheduler.Position{})
			_, err := a.Serve(t.Context(), false)
			must(t, err)
			s.fates = []memory.Fate{memory.Refused}
			first, err := a.Send(t.Context(), scheduler.Sole, set("x", "1"))
			must(t, err)
			if !during {
				_ = first() // it is refused
			}
			second, err := a.Send(t.Context(), scheduler.Behind, func(tx scheduler.Tx) error {
				_ = first() // the same
				return set("y", "1")(tx)
			})
			if err == nil {
				err = second()
			}
			if got := setting(t, b, "y"); !errors.Is(err, scheduler.ErrAgain) || got != "" {
				t.Errorf("behind a refused commit: %v, stored %q, want %v and nothing", err, got, scheduler.ErrAgain)
			}
		})
	}
}

// TestDatabaseWentBack connects a node to a copy that is behind: the node notices, and no number is given twice.
func TestDatabaseWentBack(t *testing.T) {
	for name, promoted := range map[string]bool{"a promoted standby": true, "a restored copy": false} {
		t.Run(name, func(t *testing.T) {
			s, db, a, b := stepped(t)
			var seq int64
			var lanes []rules.LaneID
			number := func(kind string) func(scheduler.Tx) error {
				return func(tx scheduler.Tx) (err error) {
					if seq, err = tx.Seqs(t.Context(), 1); err == nil {
						lanes, err = tx.Lanes(t.Context(), []rules.Lane{{Type: kind, Units: 1}})
					}
					return err
				}
			}
			must(t, a.Update(t.Context(), number("kept")))
			behind := db.Copy()
			must(t, a.Update(t.Context(), number("lost")))
			lostSeq, lostLane := seq, lanes[0]
			serving, err := a.Serve(t.Context(), false)
			must(t, err)
			if promoted {
				behind.Promote()
			}
			a.Repoint(behind)
			b.Repoint(behind)
			s.now += 100
			if _, err := a.Serve(t.Context(), false); !errors.Is(err, scheduler.ErrWentBack) {
				t.Errorf("Serve: got error %v, want ErrWentBack", err)
			}
			if err := a.Update(t.Context(), number("new")); !errors.Is(err, scheduler.ErrWentBack) {
				t.Errorf("Update: got error %v, want ErrWentBack", err)
			}
			if why := a.WentBack(); why == "" || a.WentBack() != "" {
				t.Errorf("the reason is %q, want one, once", why)
			}
			must(t, a.Update(t.Context(), number("new")))
			if seq <= lostSeq || lanes[0] <= lostLane {
				t.Errorf("place %d and lane %d were given after %d and %d", seq, lanes[0], lostSeq, lostLane)
			}
			if after, err := a.Serve(t.Context(), false); err != nil || after.Fence < int64(serving.LastBeat) {
				t.Errorf("the floor of fences is %d, %v; want no less than the clock, %d", after.Fence, err,
					serving.LastBeat)
			}
		})
	}
}

// TestFencesPassAClockThatWasSetBack: node a gave fences while the clock was ahead, and b comes to a copy without them.
func TestFencesPassAClockThatWasSetBack(t *testing.T) {
	s, db, a, _ := stepped(t)
	s.now = s.now.Add(time.Hour)
	ahead, err := a.Serve(t.Context(), false)
	must(t, err)
	s.now = s.now.Add(-time.Hour)
	b, behind := db.Open("later"), db.Copy()
	behind.Promote()
	_, err = b.Serve(t.Context(), false)
	must(t, err)
	b.Repoint(behind)
	for _, want := range []error{scheduler.ErrWentBack, scheduler.ErrWentBack, nil} {
		if err := b.Update(t.Context(), set("x", "y")); !errors.Is(err, want) {
			t.Errorf("Update: got error %v, want %v", err, want)
		}
	}
	if after, err := b.Serve(t.Context(), false); err != nil || after.Fence <= int64(ahead.LastBeat) {
		t.Errorf("the floor of fences is %d, %v; want one above %d", after.Fence, err, ahead.LastBeat)
	}
}

// BenchmarkServe and BenchmarkFollow are what an idle node does all the time.
func BenchmarkServe(b *testing.B) {
	s, _, store, _ := stepped(b)
	for b.Loop() {
		s.now++
		_, err := store.Serve(b.Context(), false)
		must(b, err)
	}
}

func BenchmarkFollow(b *testing.B) {
	_, _, store, other := stepped(b)
	for range 100 {
		must(b, other.Update(b.Context(), set("x", "1")))
	}
	p := scheduler.Position{}
	for b.Loop() {
		follow(b, store, p)
	}
}
