package memory_test

import (
	"errors"
	"testing"
	"time"

	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
)

// changes returns what a node reads of others' changes after a position.
func changes(t testing.TB, s *memory.Store, after scheduler.Position) (list []scheduler.Change) {
	t.Helper()
	must(t, s.View(t.Context(), func(v scheduler.View) (err error) {
		list, err = v.Changes(t.Context(), after)
		return err
	}))
	return list
}

// serveFor lets a node serve for a time.
func (s *script) serveFor(d time.Duration, node *memory.Store) {
	for end := s.now.Add(d); s.now < end; s.now = s.now.Add(20 * time.Second) {
		_, err := node.Serve(s.t.Context(), false)
		must(s.t, err)
		changes(s.t, node, nil)
	}
}

// TestDeadStreamEnds has a node fall silent: five minutes later its stream is removed and its followers read its end.
// Its last change stays for a week, so that a node that was only away does not think that the database went back.
func TestDeadStreamEnds(t *testing.T) {
	s, db, a, b := stepped(t)
	must(t, a.Update(t.Context(), set("x", "1")))
	must(t, a.Update(t.Context(), set("x", "2")))
	read := changes(t, b, nil)
	if len(read) != 2 {
		t.Fatalf("b reads %+v, want two changes", read)
	}
	at := scheduler.Position{}
	for _, c := range read {
		at.Move(c)
	}
	s.serveFor(4*time.Minute, b)
	if got := changes(t, b, at); len(got) != 0 {
		t.Fatalf("a is silent for four minutes, and b reads %+v", got)
	}
	s.serveFor(2*time.Minute, b)
	got := changes(t, b, at)
	if len(got) != 1 || got[0].N != scheduler.Ended || got[0].Stream != read[0].Stream {
		t.Fatalf("a is silent for six minutes, and b reads %+v, want the end of stream %d", got, read[0].Stream)
	}
	if got = changes(t, b, scheduler.Position{}); len(got) != 0 {
		t.Fatalf("b has read the end of the stream, and reads %+v", got)
	}
	if err := a.Update(t.Context(), set("x", "3")); !errors.Is(err, scheduler.ErrAgain) {
		t.Fatalf("a writes to a stream that nobody reads: %v, want %v", err, scheduler.ErrAgain)
	}
	if err := a.Update(t.Context(), set("x", "3")); !errors.Is(err, scheduler.ErrWentBack) {
		t.Fatalf("a goes on with %v, want %v", err, scheduler.ErrWentBack)
	}
	if must(t, a.Update(t.Context(), set("x", "3"))); a.WentBack() != "" {
		t.Fatal("a took its own silence for a database that went back")
	}
	if got = changes(t, b, scheduler.Position{}); len(got) != 1 || string(got[0].Data) != "3" {
		t.Fatalf("b reads %+v of the new stream of a, want one change", got)
	}
	s.serveFor(8*24*time.Hour, b)
	db.Open("c")
	must(t, b.View(t.Context(), func(v scheduler.View) error {
		_, err := v.Changes(t.Context(), at)
		if !errors.Is(err, scheduler.ErrWentBack) {
			t.Errorf("after eight days the last change of the old stream is still there: %v", err)
		}
		return nil
	}))
}
