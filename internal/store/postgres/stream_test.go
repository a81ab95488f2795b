package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

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

// tidyAt tidies as if the time were at.
func tidyAt(t *testing.T, s *Store, at lessor.Instant) {
	t.Helper()
	if err := s.asServer(t.Context(), func(c *wire.Conn) error { return s.tidy(c, at) }); err != nil {
		t.Fatal(err)
	}
}

// TestTrimShowsAsGap removes changes that a node has not read. The node must find a gap.
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
		t.Fatalf("%d changes before any is old, want 20", len(got))
	}
	tidyAt(t, writer, now.Add(2*tidyEvery+keepFor))
	got := changes(t, reader, nil)
	if len(got) != 11 || got[0].N != 10 {
		t.Fatalf("of 20 changes, 10 of them old, %d are left, want 11 from 10 on: %+v", len(got), got)
	}
	tidyAt(t, writer, now.Add(10*keepFor))
	if got = changes(t, reader, nil); len(got) != 1 || got[0].N != 20 {
		t.Fatalf("all changes are old, and %+v are left; want only the last", got)
	}
	if p := positionOf(t, reader); p[got[0].Stream] != 20 {
		t.Fatalf("the position of an idle stream is %v, want 20", p)
	}
	// The writer has been away for long: its stream is removed, and its last change stays for a week. Other nodes
	// forget the stream.
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	stream := got[0].Stream
	tidyAt(t, reader, now.Add(11*keepFor+deadAfter))
	if p := positionOf(t, reader); len(p) != 0 {
		t.Fatalf("the position with a dead stream is %v, want none", p)
	}
	got = changes(t, reader, scheduler.Position{stream: 20})
	if len(got) != 1 || got[0].N != scheduler.Ended {
		t.Fatalf("a node that follows a dead stream reads %+v, want its end", got)
	}
	if next := reader.stream.next.Load(); len(*next) != 0 {
		t.Fatalf("a node keeps the position %v in a dead stream, want none", *next)
	}
	readAll(t, url, fmt.Sprintf("update change set at = at - %d", goneAfter.Milliseconds()), nil)
	openAt(t, Config{URL: url})
	left := 0
	readAll(t, url, "select from change", func([][]byte) { left++ })
	if left != 0 {
		t.Fatalf("%d changes of a dead stream are left after a week, want none", left)
	}
}

// TestStreamsAreNotComparedWithEachOther reads the plans of the statements that read all streams. With n streams and n
// positions, as after n starts of a node that crashes, no plan may read n rows n times.
func TestStreamsAreNotComparedWithEachOther(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url})
	const n = 1000
	readAll(t, url, fmt.Sprintf("insert into stream (id, seen_at) overriding system value"+
		" select i, 0 from generate_series(1, %d) i", n), nil)
	readAll(t, url, fmt.Sprintf("insert into change select i, 1, 0, false, '' from generate_series(1, %d) i", n), nil)
	ids := make([]string, n)
	for i := range ids {
		ids[i] = strconv.Itoa(i + 1)
	}
	at := "('{" + strings.Join(ids, ",") + "}', '{" + strings.Repeat("1,", n-1) + "1}'"
	for _, read := range []struct {
		stmt *wire.Statement
		args string
	}{
		{readChanges, at + ", 0)"},
		{readGone, at + ")"},
		{readPosition, "(0)"},
		{guard, at + ", 0, (extract(epoch from clock_timestamp()) * 1000)::bigint, 0)"},
	} {
		f := wire.Form{Stmt: read.stmt}
		for _, line := range analyze(t, s, f.Text(), read.args) {
			m := actualRows.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			rows, _ := strconv.ParseFloat(m[1], 64)
			loops, _ := strconv.ParseFloat(m[2], 64)
			if rows*loops > 2*n {
				t.Errorf("with %d streams a step of the plan makes %.0f rows, want at most %d:\n%s\n%s", n, rows*loops,
					2*n, line, f.Text())
			}
		}
	}
}

var actualRows = regexp.MustCompile(`actual rows=([0-9.]+) loops=([0-9.]+)`)

// analyze runs a statement as the store does, prepared and with its settings, and returns the lines of its plan.
func analyze(t *testing.T, s *Store, text, args string) (lines []string) {
	t.Helper()
	err := s.asServer(t.Context(), func(c *wire.Conn) error {
		c.Begin(begin, wire.Limits{Idle: time.Minute, Lock: time.Minute, Statement: time.Minute})
		if err := c.Send(); err != nil {
			return err
		}
		if _, err := c.Exec(t.Context(), "prepare analyzed as "+text); err != nil {
			return err
		}
		results, err := c.Exec(t.Context(), "explain (analyze, timing off) execute analyzed"+args+
			"; deallocate analyzed; rollback")
		if err != nil {
			return err
		}
		for _, r := range results[0].Rows {
			lines = append(lines, string(r[0]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
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

// TestNodeThatSleptGetsAGap: a node that has not read for so long that changes may have been removed gets one gap.
func TestNodeThatSleptGetsAGap(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	if got := changes(t, s, nil); len(got) != 0 {
		t.Fatalf("changes in an empty store: %+v, want none", got)
	}
	s.stream.followed.Add(-forgetAfter.Milliseconds() - 1)
	if got := changes(t, s, nil); len(got) != 1 || got[0].N == 1 {
		t.Fatalf("after a long sleep there are changes %+v, want a gap", got)
	}
	positionOf(t, s)
	if got := changes(t, s, nil); len(got) != 0 {
		t.Fatalf("changes after a new position was read: %+v, want none", got)
	}
}

// TestDroppedStreamIsReplaced: a node that others took for dead gets a new stream and reads the tables again. It must
// not report that the database went back.
func TestDroppedStreamIsReplaced(t *testing.T) {
	for _, wrote := range []int{0, 2} {
		url := pool.Database(t)
		s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
		for range wrote {
			if err := write(t.Context(), s, "first", nil); err != nil {
				t.Fatal(err)
			}
		}
		old := s.stream.id.Load()
		readAll(t, url, fmt.Sprintf("update stream set seen_at = seen_at - %d where id = %d",
			deadAfter.Milliseconds(), old), nil)
		serving, err := other.Serve(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		tidyAt(t, other, serving.LastBeat.Add(keepFor))
		if err := write(t.Context(), s, "lost", nil); err == nil {
			t.Fatal("a change was committed to a dropped stream, want an error")
		}
		if err := write(t.Context(), s, "again", nil); !errors.Is(err, scheduler.ErrWentBack) {
			t.Fatalf("a write before the tables were read again: %v, want %v", err, scheduler.ErrWentBack)
		}
		if err := write(t.Context(), s, "again", nil); err != nil {
			t.Fatal(err)
		}
		if s.stream.id.Load() == old || hasSetting(t, s, "lost") {
			t.Fatalf("stream %d after %d, and the lost change is stored: %v; want a new stream without it",
				s.stream.id.Load(), old, hasSetting(t, s, "lost"))
		}
		if why := s.WentBack(); why != "" {
			t.Fatalf("after %d commits and a long absence the node reports that the database went back: %s", wrote, why)
		}
	}
}

// TestDroppedStreamIsNotTakenForALostChange: a node that was away for long looks for its last change before it
// writes again. Other nodes have kept only that one.
func TestDroppedStreamIsNotTakenForALostChange(t *testing.T) {
	url := pool.Database(t)
	s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
	if err := write(t.Context(), s, "first", nil); err != nil {
		t.Fatal(err)
	}
	wait, err := s.Send(t.Context(), scheduler.Sole, func(tx scheduler.Tx) error {
		return errors.Join(tx.SaveSetting(t.Context(), "last", []byte("x")), tx.Publish(t.Context(), []byte("last")))
	})
	if err == nil {
		err = wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, url, fmt.Sprintf("update stream set seen_at = seen_at - %d where id = %d",
		deadAfter.Milliseconds(), s.stream.id.Load()), nil)
	serving, err := other.Serve(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	tidyAt(t, other, serving.LastBeat.Add(keepFor))
	if _, err := s.Serve(t.Context(), false); err != nil {
		t.Errorf("serve after a long absence: %v", err)
	}
	await(t, "a change is committed", func() bool { return write(t.Context(), s, "again", nil) == nil })
	if why := s.WentBack(); why != "" {
		t.Errorf("after a long absence the node reports that the database went back: %s", why)
	}
}

// TestFencesPassAClockThatWasSetBack: the clock was ahead before this node came, and other nodes may have given fences
// above that moment which are lost. The floor under fences must be above them.
func TestFencesPassAClockThatWasSetBack(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url})
	readAll(t, url, "update serving set latest = floor(extract(epoch from clock_timestamp()) * 1000)::bigint + 3600000",
		nil)
	serving, err := s.Serve(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, url, fmt.Sprintf("delete from stream where id = %d", s.stream.id.Load()), nil)
	for _, want := range []error{scheduler.ErrAgain, scheduler.ErrWentBack, nil} {
		if err := write(t.Context(), s, "x", nil); !errors.Is(err, want) {
			t.Fatalf("a write: %v, want %v", err, want)
		}
	}
	after, err := s.Serve(t.Context(), false)
	if ahead := serving.LastBeat.Add(time.Hour); err != nil || after.Fence <= int64(ahead) {
		t.Errorf("the floor of fences is %d, %v; want one above %d", after.Fence, err, ahead)
	}
}
