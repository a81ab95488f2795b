package postgres

import (
	"errors"
	"testing"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

func changes(t *testing.T, s *Store, after scheduler.Position) (got []scheduler.Change) {
	t.Helper()
	if err := s.View(t.Context(), func(v scheduler.View) (err error) {
		got, err = v.Changes(t.Context(), after)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// tidyAt tidies as if it were at.
func tidyAt(t *testing.T, s *Store, at lessor.Instant) {
	t.Helper()
	if err := s.asServer(t.Context(), func(c *wire.Conn) error { return s.tidy(c, at) }); err != nil {
		t.Fatal(err)
	}
}

// TestTrimShowsAsGap removes the changes that a node has not read: it finds a gap, and not nothing.
func TestTrimShowsAsGap(t *testing.T) {
	url := pool.Database(t)
	writer, reader := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
	commit := func(n int) {
		t.Helper()
		for range n {
			if err := write(t.Context(), writer, "x", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	commit(10)
	serving, err := writer.Serve(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	now := serving.LastBeat
	tidyAt(t, writer, now.Add(tidyEvery)) // notes that change 10 is the newest
	commit(10)
	if got := changes(t, reader, nil); len(got) != 20 || got[0].N != 1 {
		t.Fatalf("before any is old there are %d changes, want 20", len(got))
	}
	tidyAt(t, writer, now.Add(2*tidyEvery+keepFor))
	got := changes(t, reader, nil)
	if len(got) != 11 || got[0].N != 10 {
		t.Fatalf("of 20 changes, 10 of them old, %d are left: %+v", len(got), got)
	}
	tidyAt(t, writer, now.Add(10*keepFor))
	if got = changes(t, reader, nil); len(got) != 1 || got[0].N != 20 {
		t.Fatalf("all are old, and %+v is left; want the last", got)
	}
	if p := positionOf(t, reader); p[got[0].Stream] != 20 {
		t.Fatalf("the position of an idle stream is %v, want 20", p)
	}
	// The writer is gone for long: its last change stays for a week, and then nothing is left of it.
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	tidyAt(t, reader, now.Add(11*keepFor+deadAfter))
	if got = changes(t, reader, nil); len(got) != 1 {
		t.Fatalf("of a dead stream %+v is left; want the last", got)
	}
	tidyAt(t, reader, now.Add(12*keepFor+goneAfter))
	if got = changes(t, reader, nil); len(got) != 0 {
		t.Fatalf("of a stream that is gone %+v is left", got)
	}
}

func positionOf(t *testing.T, s *Store) (p scheduler.Position) {
	t.Helper()
	if err := s.View(t.Context(), func(v scheduler.View) (err error) {
		p, err = v.Position(t.Context())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSleeperLosesTrack: a node that has not read for so long that changes may be gone gets a gap, once.
func TestSleeperLosesTrack(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	if got := changes(t, s, nil); len(got) != 0 {
		t.Fatalf("changes in an empty store: %+v", got)
	}
	s.stream.followed.Add(-forgetAfter.Milliseconds() - 1)
	if got := changes(t, s, nil); len(got) != 1 || got[0].N == 1 {
		t.Fatalf("after a long sleep there are changes %+v, want a gap", got)
	}
	positionOf(t, s)
	if got := changes(t, s, nil); len(got) != 0 {
		t.Fatalf("after starting again from a position: %+v", got)
	}
}

// TestStreamThatWasDropped: a node that others took for dead gets a new stream.
func TestStreamThatWasDropped(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url})
	readAll(t, url, "delete from stream", nil)
	old := s.stream.id.Load()
	if err := write(t.Context(), s, "lost", nil); err == nil {
		t.Fatal("a change that nobody can see was committed")
	}
	if err := write(t.Context(), s, "again", nil); !errors.Is(err, scheduler.ErrWentBack) {
		t.Fatalf("what is written next without a look at the tables: %v", err)
	}
	if err := write(t.Context(), s, "again", nil); err != nil {
		t.Fatal(err)
	}
	if s.stream.id.Load() == old || has(t, s, "lost") {
		t.Fatalf("stream %d after %d, and the lost change is there: %v", s.stream.id.Load(), old, has(t, s, "lost"))
	}
}
