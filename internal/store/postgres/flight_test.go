package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestNextTransactionSeesThePendingOne begins each transaction while the previous commit is pending. It reads what the
// previous one wrote, and the change of each has a number of its own.
func TestNextTransactionSeesThePendingOne(t *testing.T) {
	url := pool.Database(t)
	s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
	ctx := t.Context()
	var waits []func() error
	for n := byte(1); n <= 20; n++ {
		wait, err := s.Send(ctx, scheduler.Sole, func(tx scheduler.Tx) error {
			was, err := tx.Setting(ctx, "n")
			if n > 1 && (len(was) != 1 || was[0] != n-1) {
				t.Errorf("transaction %d reads %v, want %d of the one before", n, was, n-1)
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

// TestFailureFailsTheNextTransaction: a transaction behind one that fails does not commit, also if the failure was
// reported before it begins. Later ones do.
func TestFailureFailsTheNextTransaction(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	ctx := t.Context()
	send := func(name string, on scheduler.Footing, fn func(tx scheduler.Tx) error) (func() error, error) {
		return s.Send(ctx, on, func(tx scheduler.Tx) error {
			return errors.Join(tx.SaveSetting(ctx, name, []byte("x")), fn(tx))
		})
	}
	nothing := func(scheduler.Tx) error { return nil }
	for _, known := range []bool{false, true} { // whether anybody knows that the first has failed
		wait, err := send("first", scheduler.Sole, func(tx scheduler.Tx) error {
			// There is no such row.
			return tx.Move(ctx, []scheduler.Move{{From: rules.InQueue, To: rules.Delayed, Turn: rules.Turn{Seq: 1}}})
		})
		if err != nil {
			t.Fatal(err)
		}
		fails := func() {
			if err := wait(); !errors.Is(err, scheduler.ErrMoved) {
				t.Errorf("the first transaction: got error %v, want %v", err, scheduler.ErrMoved)
			}
		}
		if known {
			fails()
		}
		_, err = send("second", scheduler.Behind, nothing)
		if !errors.Is(err, scheduler.ErrAgain) {
			t.Errorf("the second transaction, the end of the first is known: %v: got error %v, want %v", known, err,
				scheduler.ErrAgain)
		}
		fails()
	}
	wait, err := send("third", scheduler.Sole, nothing)
	if err == nil {
		err = wait()
	}
	if err != nil || hasSetting(t, s, "first") || hasSetting(t, s, "second") || !hasSetting(t, s, "third") {
		t.Errorf("the third transaction: %v; stored are first %v, second %v, third %v; want only the third", err,
			hasSetting(t, s, "first"), hasSetting(t, s, "second"), hasSetting(t, s, "third"))
	}
}

// TestGuardFailsTheCommitIfAnotherNodeWrote cancels a lease on another node, before or while a node that believes it is
// alone sends the heartbeat of that lease. The heartbeat, which does not know of the cancel, must not commit.
func TestGuardFailsTheCommitIfAnotherNodeWrote(t *testing.T) {
	for _, when := range []string{"never", "before", "while"} {
		t.Run(when, func(t *testing.T) {
			undisturbed(t, func() (time.Duration, error) { return beatBesideACancel(t, when) })
		})
	}
}

// beatBesideACancel sends a heartbeat on a node that believes it is alone. Another node cancels the lease never, before
// or while it does so.
func beatBesideACancel(t *testing.T, when string) (took time.Duration, err error) {
	t.Helper()
	url := pool.Database(t)
	s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
	ids := leaseJobs(t, s, 3)
	cancel := func(between func()) error {
		return other.Update(t.Context(), func(tx scheduler.Tx) error {
			held, err := tx.Leases(t.Context(), ids[:1])
			if err != nil {
				return err
			}
			between()
			held[ids[0]].CancelAt = 1
			return tx.SaveLeases(t.Context(), []*rules.Held{held[ids[0]]})
		})
	}
	start := time.Now()
	s.alone(t, ids)
	var wait func() error
	beat := func() { wait, err = s.beatAlone(t, ids, nil) }
	var cancelled error
	switch when {
	case "never":
		beat()
	case "before":
		cancelled = cancel(func() {})
		beat()
	case "while":
		cancelled = cancel(beat)
	}
	if err == nil {
		err = wait()
	}
	took = time.Since(start)
	if cancelled != nil {
		return took, cancelled
	}
	if refused := when != "never"; errors.Is(err, scheduler.ErrAgain) != refused || !refused && err != nil {
		return took, fmt.Errorf("got error %w, want ErrAgain: %v", err, refused)
	}
	count := 0
	readAll(t, url, "select 1 from lease where cancel_at = 1", func([][]byte) { count++ })
	if when != "never" && count != 1 {
		t.Errorf("%d leases are cancelled, want 1: the change of the other node is lost", count)
	}
	return took, nil
}

// TestGuardedLockFailsAfterOthersWrote locks a lease that another node has granted, on a node that believes it is
// alone. The store must not answer that there are no changes, since the lease came with one.
func TestGuardedLockFailsAfterOthersWrote(t *testing.T) {
	undisturbed(t, func() (time.Duration, error) {
		url := pool.Database(t)
		s, other := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
		start := time.Now()
		s.alone(t, nil)
		ids := leaseJobs(t, other, 1)
		_, err := s.Send(t.Context(), scheduler.Sole, func(sent scheduler.Tx) error {
			if !sent.(*tx).guard {
				return errNotAlone
			}
			if held, err := sent.Leases(t.Context(), ids); err != nil || held[ids[0]] == nil {
				return fmt.Errorf("the lease of the other node: %v, error %w; want it found", held[ids[0]], err)
			}
			_, err := sent.Changes(t.Context(), scheduler.Position{})
			return err
		})
		if errors.Is(err, scheduler.ErrAgain) {
			return time.Since(start), nil
		}
		return time.Since(start), fmt.Errorf("got error %w, want %w", err, scheduler.ErrAgain)
	})
}

// TestHeartbeatOfASoleNodeIsOneRoundTrip counts the writes to the network.
func TestHeartbeatOfASoleNodeIsOneRoundTrip(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	s.wantOneRoundTrip(t, nil)
}

// TestPendingTransactionsCommitInTheirOrder sends a transaction while the one before waits in the server. The first
// waits for the gate, or before that for a lease, so that the second could reach the gate first. They must commit in
// their order. If the first fails, the second must fail too, and the store must continue.
func TestPendingTransactionsCommitInTheirOrder(t *testing.T) {
	moveNothing := func(tx scheduler.Tx) error {
		return errors.Join(tx.Gate(t.Context()), // the store takes the row from the queue last
			tx.Move(t.Context(), []scheduler.Move{{From: rules.InQueue, To: rules.Delayed, Turn: rules.Turn{Seq: 1}}}))
	}
	for name, c := range map[string]pendingPair{
		"both are committed":        {},
		"the second is faster":      {atLease: true},
		"another node came between": {between: true, fails: true},
		"the first fails":           {besides: moveNothing, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			undisturbed(t, func() (time.Duration, error) { return c.send(t) })
		})
	}
}

// TestOrderLockIsNotHeldBeforeItIsSent: the first transaction that a connection sends in parts must prepare the
// statement of the order lock. The lock does not count as held meanwhile: another session has it here.
func TestOrderLockIsNotHeldBeforeItIsSent(t *testing.T) {
	undisturbed(t, func() (time.Duration, error) {
		url := pool.Database(t)
		s := openAt(t, patient(url))
		ids := leaseJobs(t, s, 1)
		start := time.Now()
		s.alone(t, ids)
		s.usual = busyFrom // a busy node sends in parts
		lock := newHolder(t, url, fmt.Sprintf("begin; select pg_advisory_xact_lock(%d, %d)",
			int32(s.stream.id.Load()), s.orders+1))
		lock.take()
		wait, err := s.beatAlone(t, ids, nil)
		if err != nil {
			return time.Since(start), err
		}
		if f := s.flights[0]; f.held {
			t.Errorf("order lock %d counts as held, want not", f.order)
		}
		awaitWaiting(t, url, 1)
		lock.give()
		err = wait()
		return time.Since(start), err
	})
}

// pendingPair says how two transactions are sent, of which the second does not wait for the first.
type pendingPair struct {
	atLease bool                     // the first waits for its lease
	besides func(scheduler.Tx) error // what the first does besides its heartbeat
	between bool                     // another node writes
	fails   bool
}

// send sends both, and returns what is not as it should be, and how long it took from the last reading to the answers.
func (c *pendingPair) send(t *testing.T) (took time.Duration, err error) {
	t.Helper()
	wrong := func(format string, args ...any) { err = errors.Join(err, fmt.Errorf(format, args...)) }
	checked := func(name string, wait func() error, fails bool) {
		if err := wait(); errors.Is(err, scheduler.ErrAgain) != fails || !fails && err != nil {
			wrong("the %s: got error %w, want ErrAgain: %v", name, err, fails)
		}
	}
	url := pool.Database(t)
	s, other := openAt(t, Config{URL: url, GateTimeout: 10 * time.Second}), openAt(t, Config{URL: url})
	ids := leaseJobs(t, s, 3)
	gate, next := newHolder(t, url, takeGate), newHolder(t, url, takeGate)
	if c.atLease {
		next = newHolder(t, url, "begin; select 1 from lease where id = '"+ids[1].String()+"' for update")
	}
	beat := func(id int, besides func(scheduler.Tx) error) (wait func() error) {
		wait, failed := s.beatAlone(t, ids[id:id+1], besides)
		if failed != nil {
			return func() error { return failed }
		}
		return wait
	}
	giveGate := sync.OnceFunc(gate.give)
	s.prepareBoth(t, ids, nil)
	start := time.Now()
	s.alone(t, ids)
	was := s.stream.n
	gate.take()
	zeroth, failed := s.beatAlone(t, ids[:1], nil)
	if failed != nil {
		giveGate()
		return time.Since(start), failed
	}
	awaitWaiting(t, url, 1)
	go next.take()
	if c.atLease {
		<-next.taken
	} else {
		awaitWaiting(t, url, 2) // it waits behind the zeroth
	}
	first := beat(1, func(tx scheduler.Tx) error {
		giveGate() // the first has begun and waits for the zeroth
		if c.besides == nil {
			return nil
		}
		return c.besides(tx)
	})
	giveGate() // if the first has not begun
	<-next.taken
	second := beat(2, nil)
	if len(s.flights) != 2 || s.flights[0].over() {
		wrong("%d transactions are pending, want 2, the first not over", len(s.flights))
	}
	if c.between {
		if err := write(t.Context(), other, "between", nil); err != nil {
			wrong("between: %w", err)
		}
	}
	await(t, "the second transaction waits or is done", func() bool {
		return len(s.flights) < 2 || s.flights[1].isDone() || countWaiting(t, url) > 0
	})
	next.give()
	checked("zeroth", zeroth, false)
	checked("first", first, c.fails)
	checked("second", second, c.fails)
	took = time.Since(start)
	if err := write(t.Context(), s, "after", nil); err != nil {
		wrong("a transaction after them: %w", err)
	}
	want := was + 4
	if c.fails {
		want = was + 2
	}
	var got int64
	readAll(t, url, "select 1 from change where stream = "+strconv.FormatInt(s.stream.id.Load(), 10),
		func([][]byte) { got++ })
	if got != want || s.stream.n != want {
		wrong("%d changes, the last with number %d; want %d for both", got, s.stream.n, want)
	}
	return took, err
}

func (f *flight) isDone() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

var takeGate = fmt.Sprintf("begin; select pg_advisory_xact_lock(%d)", gateKey)

// holder is a session that holds a lock which a transaction needs.
type holder struct {
	t     *testing.T
	conn  *pgconn.PgConn
	text  string
	taken chan struct{}
}

// newHolder opens a session that runs text when take is called.
func newHolder(t *testing.T, url, text string) *holder {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return &holder{t: t, conn: c, text: text, taken: make(chan struct{})}
}

func (h *holder) take() {
	h.exec(h.text)
	close(h.taken)
}

func (h *holder) give() { h.exec("rollback") }

func (h *holder) exec(text string) {
	if _, err := h.conn.Exec(context.Background(), text).ReadAll(); err != nil {
		h.t.Error(err)
	}
}

// awaitWaiting returns when n sessions wait for an advisory lock.
func awaitWaiting(t *testing.T, url string, n int) {
	t.Helper()
	await(t, fmt.Sprintf("%d sessions wait for an advisory lock", n), func() bool { return countWaiting(t, url) >= n })
}

// countWaiting returns the number of sessions that wait for an advisory lock.
func countWaiting(t *testing.T, url string) (n int) {
	t.Helper()
	readAll(t, url, "select 1 from pg_locks where locktype = 'advisory' and not granted and database ="+
		" (select oid from pg_database where datname = current_database())", func([][]byte) { n++ })
	return n
}
