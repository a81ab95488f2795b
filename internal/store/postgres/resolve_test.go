package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor/internal/scheduler"
)

// fate is what happens to the bytes of one write.
type fate int

const (
	passes     fate = iota
	lost            // the bytes never arrive
	unanswered      // the bytes arrive, and the answer does not
	late            // the bytes arrive after the node has given up
)

// link is a network in which the next write can be made to fail.
type link struct {
	mu     sync.Mutex
	next   fate
	down   bool
	writes int
	missed chan func() // delivers the bytes that are late
}

// arm sets the fate of the next write.
func (w *link) arm(f fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = f
}

// cut makes new connections fail, or work again.
func (w *link) cut(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

// count returns the number of writes.
func (w *link) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// through makes a store connect through the link.
func (w *link) through(s *Store) {
	w.missed = make(chan func(), 1)
	dial := s.dialer.Server.DialFunc
	s.dialer.Server.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.down {
			return nil, errors.New("the link is cut")
		}
		c, err := dial(ctx, network, addr)
		return &linkConn{Conn: c, wire: w}, err
	}
	for _, c := range s.writers {
		_ = c.Close()
	}
	s.writers = nil
}

// linkConn is a connection over a link. After it became deaf, it receives nothing.
type linkConn struct {
	net.Conn
	wire *link
	deaf atomic.Bool
}

func (c *linkConn) Write(b []byte) (int, error) {
	c.wire.mu.Lock()
	f := c.wire.next
	c.wire.next = passes
	c.wire.writes++
	c.wire.mu.Unlock()
	switch f {
	case lost:
		_ = c.Conn.Close()
		return 0, io.ErrClosedPipe
	case unanswered:
		n, err := c.Conn.Write(b)
		_, _ = c.Conn.Read(make([]byte, 1)) // an answer shows that the server has executed it
		c.deaf.Store(true)
		return n, err
	case late:
		c.deaf.Store(true)
		bytes := append([]byte{}, b...)
		c.wire.missed <- func() {
			_, _ = c.Conn.Write(bytes)
			_, _ = io.ReadAll(c.Conn) // until the server has executed it and the time-out ends the session
		}
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *linkConn) Read(b []byte) (int, error) {
	if c.deaf.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return c.Conn.Read(b)
}

// Close leaves a deaf connection open, so that late bytes can still be delivered.
func (c *linkConn) Close() error {
	if c.deaf.Load() {
		return nil
	}
	return c.Conn.Close()
}

// hasSetting reports whether a view of the store shows a setting.
func hasSetting(t *testing.T, s scheduler.Store, name string) bool {
	t.Helper()
	var value []byte
	if err := s.View(t.Context(), func(v scheduler.View) (err error) {
		value, err = v.Setting(t.Context(), name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return value != nil
}

// write commits one setting and a change. It calls before between the setting and the change.
func write(ctx context.Context, s *Store, name string, before func()) error {
	return s.Update(ctx, func(tx scheduler.Tx) error {
		if err := tx.SaveSetting(ctx, name, []byte("x")); err != nil {
			return err
		}
		if before != nil {
			before()
		}
		return tx.Publish(ctx, []byte(name))
	})
}

// TestLostAnswerOfACommitIsResolved loses the connection during COMMIT in several ways. The store must tell its caller
// what happened.
func TestLostAnswerOfACommitIsResolved(t *testing.T) {
	url := pool.Database(t)
	s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
	var w link
	w.through(s)
	position := scheduler.Position{}
	for i, c := range []struct {
		name string
		fate fate
		want error
	}{
		{"arrives and is answered", passes, nil},
		{"never arrives", lost, scheduler.ErrUnreachable},
		{"arrives, the answer is lost", unanswered, nil},
		{"arrives late", late, scheduler.ErrUnreachable},
		{"comes after these", passes, nil},
	} {
		name := strconv.Itoa(i)
		if err := write(t.Context(), s, "warm"+name, nil); err != nil { // which prepares all statements
			t.Fatalf("%s: %v", c.name, err)
		}
		err := write(t.Context(), s, name, func() { w.arm(c.fate) })
		if !errors.Is(err, c.want) {
			t.Errorf("a commit that %s: got error %v, want %v", c.name, err, c.want)
		}
		if c.fate == late {
			deliver := <-w.missed
			deliver()
		}
		if got := hasSetting(t, other, name); got != (c.want == nil) {
			t.Errorf("a commit that %s: stored: %v, and the caller was told %v", c.name, got, err)
		}
		follow(t, other, position)
	}
	w.arm(lost) // BEGIN is lost: the store repeats it on a new connection
	if err := write(t.Context(), s, "begun again", nil); err != nil || !hasSetting(t, other, "begun again") {
		t.Errorf("a transaction whose BEGIN was lost: %v, want it committed", err)
	}
}

// TestCommitThatCannotBeResolvedIsUnknown loses the connection during COMMIT and cannot make a new one. The error says
// that the outcome is unknown, and later commits go to a new stream without a gap.
func TestCommitThatCannotBeResolvedIsUnknown(t *testing.T) {
	url := pool.Database(t)
	s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
	var w link
	w.through(s)
	if err := write(t.Context(), s, "warm", nil); err != nil {
		t.Fatal(err)
	}
	position := scheduler.Position{}
	follow(t, other, position)
	before := s.stream.id.Load()
	err := write(t.Context(), s, "unknown", func() {
		w.arm(unanswered)
		w.cut(true)
	})
	if !errors.Is(err, scheduler.ErrUnknownOutcome) || errors.Is(err, scheduler.ErrUnreachable) {
		t.Fatalf("got error %v, want only %v", err, scheduler.ErrUnknownOutcome)
	}
	w.cut(false)
	if err := write(t.Context(), s, "next", nil); err != nil {
		t.Fatal(err)
	}
	if s.stream.id.Load() == before {
		t.Errorf("a commit went to stream %d, whose next number is unknown; want a new stream", before)
	}
	follow(t, other, position)
	if !hasSetting(t, s, "unknown") {
		t.Error("the commit did not happen, want one that happened and whose answer was lost")
	}
}

// follow reads the changes after a position and fails the test at a gap.
func follow(t *testing.T, s scheduler.Store, p scheduler.Position) (data []string) {
	t.Helper()
	err := s.View(t.Context(), func(v scheduler.View) error {
		changes, err := v.Changes(t.Context(), p)
		for _, c := range changes {
			if c.N != p[c.Stream]+1 {
				t.Fatalf("stream %d goes from change %d to %d, want no gap", c.Stream, p[c.Stream], c.N)
			}
			p[c.Stream] = c.N
			data = append(data, string(c.Data))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTerminatedSessionsLoseNoCommit ends the sessions of a store that writes, over and over. Acknowledged settings are
// stored, refused ones are not, and the streams have no gaps.
func TestTerminatedSessionsLoseNoCommit(t *testing.T) {
	url := pool.Database(t)
	s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
	position := scheduler.Position{}
	ctx, stop := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	var killed atomic.Int64
	killer.Go(func() {
		c, err := pgconn.Connect(context.Background(), url)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close(context.Background()) }()
		for ctx.Err() == nil && killed.Load() < 150 {
			r := c.ExecParams(context.Background(),
				"select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"+
					" and pid <> pg_backend_pid() and application_name = 'lessor' order by random()"+
					" limit 1", nil, nil, nil, nil).Read()
			if r.Err != nil {
				t.Errorf("terminate: %v", r.Err)
				return
			}
			killed.Add(int64(len(r.Rows)))
			time.Sleep(time.Duration(killed.Load()%7) * time.Millisecond)
		}
	})
	outcomes := map[string]bool{}
	deadline := time.Now().Add(time.Minute)
	for i := 0; killed.Load() < 150 && time.Now().Before(deadline); i++ {
		name := fmt.Sprint("key", i)
		err := write(t.Context(), s, name, nil)
		switch {
		case err == nil, errors.Is(err, scheduler.ErrUnreachable):
			outcomes[name] = err == nil
		default:
			t.Fatalf("write %d: %v", i, err)
		}
	}
	stop()
	killer.Wait()
	stored, refused := map[string]bool{}, 0
	readAll(t, url, "select name from setting", func(values [][]byte) { stored[string(values[0])] = true })
	for name, want := range outcomes {
		if stored[name] != want {
			t.Errorf("%s was acknowledged: %v, and is stored: %v", name, want, stored[name])
		}
		if !want {
			refused++
		}
	}
	for range 20 { // the other store's session may be one of those that were ended last
		if other.View(t.Context(), func(scheduler.View) error { return nil }) == nil {
			break
		}
	}
	follow(t, other, position)
	if killed.Load() == 0 {
		t.Error("no session was ended, want 150")
	}
	t.Logf("%d writes, %d refused, %d sessions ended", len(outcomes), refused, killed.Load())
}

// readAll runs statements on a connection of its own, and calls each for every row.
func readAll(t testing.TB, url, text string, each func([][]byte)) {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	results, err := c.Exec(t.Context(), text).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, r := range results {
		for _, values := range r.Rows {
			if each != nil {
				each(values)
			}
		}
	}
}
