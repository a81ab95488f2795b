package postgres

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/internal/pgtest"
	"lessor/internal/scheduler"
)

// withStandby starts a server whose commits wait for a standby.
func withStandby(t *testing.T) (primary, standby *pgtest.Server) {
	t.Helper()
	primary, err := pgtest.Start(t.Context(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop := func(s *pgtest.Server) {
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	stop(primary)
	if standby, err = primary.Standby(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop(standby)
	t.Cleanup(func() { _ = standby.Resume() }) // a paused standby does not stop
	must(t, primary.Synchronous(t.Context(), true))
	return primary, standby
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// impatient makes a store give up on an answer after a second.
func impatient(s *Store) {
	s.dialer.Wait = time.Second
	for _, c := range s.writers {
		c.Wait = time.Second
	}
}

const waitForStandby = "select pid from pg_stat_activity where wait_event = 'SyncRep'" +
	" and backend_type = 'client backend'"

// awaitHanging returns when n commits wait for the standby.
func awaitHanging(t *testing.T, url string, n int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got := 0
		readAll(t, url, waitForStandby, func([][]byte) { got++ })
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d commits wait for the standby, want %d", got, n)
		}
	}
}

// awaitReplay returns when a query on the standby sees all that the standby has received until now. A commit waits for
// the standby's disk, and not for its queries.
func awaitReplay(t *testing.T, standby string) {
	t.Helper()
	received := ""
	readAll(t, standby, "select pg_last_wal_receive_lsn()", func(values [][]byte) { received = string(values[0]) })
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		replayed := false
		readAll(t, standby, fmt.Sprintf("select pg_last_wal_replay_lsn() >= '%s'", received),
			func(values [][]byte) { replayed = string(values[0]) == "t" })
		if replayed {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the standby has not replayed all up to %s, which it received half a minute ago", received)
		}
	}
}

// TestCommitThatTheStandbyLacksIsUnknown: the outcome of a commit is unknown, however the wait for the standby ended,
// until a later commit has reached the standby.
func TestCommitThatTheStandbyLacksIsUnknown(t *testing.T) {
	primary, standby := withStandby(t)
	url := primary.URL("postgres")
	cancelled, lost, idle, settled := openAt(t, Config{URL: url}), openAt(t, Config{URL: url}), openAt(t,
		Config{URL: url}), openAt(t, Config{URL: url})
	for _, s := range []*Store{cancelled, lost, idle, settled} {
		must(t, write(t.Context(), s, "warm", nil))
		_, err := s.Serve(t.Context(), false)
		must(t, err)
	}
	impatient(lost)
	idle.server.Wait = time.Second
	time.Sleep(2 * provedFor) // after this the idle store must prove that it can commit
	noted := func() (at string) {
		readAll(t, url, "select last_beat from serving", func(values [][]byte) { at = string(values[0]) })
		return at
	}
	before := noted()
	must(t, standby.Pause())
	var all sync.WaitGroup
	result := func(s *Store, name string, err *error) {
		all.Go(func() { *err = write(t.Context(), s, name, nil) })
	}
	var whenCancelled, whenLost, whenServing error
	result(cancelled, "cancelled", &whenCancelled)
	awaitHanging(t, url, 1)
	readAll(t, url, "select pg_cancel_backend(pid) from ("+waitForStandby+") w", nil)
	result(lost, "lost", &whenLost)
	all.Go(func() { _, whenServing = idle.Serve(t.Context(), false) })
	all.Wait()
	for name, err := range map[string]error{
		"the wait was cancelled": whenCancelled,
		"the store gave up":      whenLost,
	} {
		if !errors.Is(err, scheduler.ErrUnknownOutcome) {
			t.Errorf("a commit that the standby does not have, %s: %v, want an unknown outcome", name, err)
		}
	}
	if !errors.Is(whenServing, scheduler.ErrUnreachable) || noted() != before {
		t.Errorf("Serve of an idle node while commits hang: %v, want %v and the serving row unchanged", whenServing,
			scheduler.ErrUnreachable)
	}
	if !hasSetting(t, settled, "cancelled") || hasSetting(t, settled, "lost") {
		t.Errorf("stored are cancelled: %v, lost: %v; want only the cancelled one", hasSetting(t, settled, "cancelled"),
			hasSetting(t, settled, "lost"))
	}

	var whenSettled error
	result(settled, "settled", &whenSettled)
	deadline := time.Now().Add(time.Minute)
	for done := false; !done; time.Sleep(10 * time.Millisecond) { // cancel the newest wait until it is visible
		if time.Now().After(deadline) {
			t.Fatal("the commit is not visible a minute after its wait was first cancelled")
		}
		readAll(t, url, waitForStandby+" and query = 'commit' order by state_change desc limit 1",
			func(values [][]byte) {
				readAll(t, url, fmt.Sprintf("select pg_cancel_backend(%s)", values[0]), nil)
			})
		done = hasSetting(t, lost, "settled")
	}
	must(t, standby.Resume())
	all.Wait()
	if whenSettled != nil {
		t.Errorf("a commit that reached the standby in the end: %v, want no error", whenSettled)
	}
	awaitReplay(t, standby.URL("postgres"))
	readAll(t, standby.URL("postgres"), "select count(*) from setting where name = 'settled'", func(values [][]byte) {
		if string(values[0]) != "1" {
			t.Errorf("the standby has %s rows of an acknowledged commit, want 1", values[0])
		}
	})
	_, err := idle.Serve(t.Context(), false)
	must(t, err)
}

// beatAll sends heartbeats for each lease until stop. The function that it returns waits for the last one, and returns
// the number of leases that are over.
func beatAll(t *testing.T, n *node, grants []lessor.Grant, stop <-chan struct{}) (wait func() int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	over := 0
	for i, g := range grants {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 33 * time.Millisecond) // so that not all are in one batch
			for {
				_, err := n.Heartbeat(t.Context(), tester, g.Lease.ID, lessor.Heartbeat{WorkerID: &g.Lease.WorkerID})
				if errors.Is(err, lessor.ErrLeaseNotFound) {
					mu.Lock()
					over++
					mu.Unlock()
					return
				}
				select {
				case <-stop:
					if err == nil { // one more heartbeat after the outage
						return
					}
				default:
				}
				time.Sleep(300 * time.Millisecond)
			}
		})
	}
	return func() int { all.Wait(); return over }
}

// TestOutageIsFreeWhileANeighbourIsIdle: leases whose workers send heartbeats survive an outage in which no commit
// succeeds, although a node without workers does not notice the outage.
func TestOutageIsFreeWhileANeighbourIsIdle(t *testing.T) {
	const ttl = 2500 * time.Millisecond
	primary, standby := withStandby(t)
	url := primary.URL("postgres")
	short := func(c *scheduler.Config) { c.TTL, c.Sweep = ttl, 50*time.Millisecond; c.Brake.Min = 1000 }
	busy, idle := startNode(t, url, short), startNode(t, url, short)
	worker := "w1"
	var grants []lessor.Grant
	for range 9 {
		_, err := busy.Submit(t.Context(), tester, lessor.Submission{Type: new("generic")})
		must(t, err)
		got, _, err := busy.Request(t.Context(), tester,
			lessor.LeaseRequest{WorkerID: &worker, WaitMS: new(int64(5000))})
		must(t, err)
		grants = append(grants, got...)
	}
	if len(grants) != 9 {
		t.Fatalf("%d leases were granted, want 9", len(grants))
	}
	for _, outage := range []struct {
		name       string
		begin, end func()
	}{
		{"the standby hangs", func() { must(t, standby.Pause()) }, func() { must(t, standby.Resume()) }},
		{"the disk is full", func() {
			readAll(t, url, "create function full_disk() returns trigger language plpgsql as $$"+
				" begin raise exception 'No space left on device' using errcode = '53100'; end $$", nil)
			readAll(t, url, "create trigger full_disk before update on lease for each row execute function full_disk()",
				nil)
		}, func() { readAll(t, url, "drop function full_disk cascade", nil) }},
	} {
		stop := make(chan struct{})
		wait := beatAll(t, busy, grants, stop)
		time.Sleep(ttl / 5)
		outage.begin()
		time.Sleep(2 * ttl)
		outage.end()
		close(stop)
		if over := wait(); over > 0 {
			t.Errorf("%s for two ttl: %d of %d leases are over, want none", outage.name, over, len(grants))
		}
	}
	_ = idle
}
