package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lessor"
	"lessor/internal/scheduler"
)

// Bounds that the racing nodes must keep at every commit.
const (
	raceUsable = 10
	raceCap    = 4
)

// referee is a trigger that counts leases at every commit that grants, and fails the commit if a bound is exceeded. It
// reads only the tables, not what the nodes believe.
const referee = `
create function referee() returns trigger language plpgsql as $$
begin
	if (select sum(units) from lease) > %d then
		raise exception 'referee: over capacity';
	end if;
	if (select count(*) from lease where tenant = new.tenant) > %d
		and new.tenant <> '00000000-0000-0000-0000-000000000000' then
		raise exception 'referee: over the cap of a tenant';
	end if;
	if (select is_unique from lane where id = new.lane)
		and exists (select 1 from lease where worker = new.worker and id <> new.id) then
		raise exception 'referee: unique job for a busy worker';
	end if;
	if new.lock_key is not null
		and (select count(*) from lease where tenant = new.tenant and lock_key = new.lock_key) > 1 then
		raise exception 'referee: lock held twice';
	end if;
	return null;
end $$;
create constraint trigger referee after insert on lease deferrable initially deferred
	for each row execute function referee()`

// arena is a database with a referee.
func arena(t *testing.T) (url string, fouls, granted *atomic.Int64) {
	t.Helper()
	url = pool.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(referee, raceUsable, raceCap)); err != nil {
		t.Fatal(err)
	}
	return url, &atomic.Int64{}, &atomic.Int64{}
}

// raceConfig has few units, and counts the commits that the referee fails.
func raceConfig(fouls, granted *atomic.Int64) scheduler.Config {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits, cfg.TenantCap = raceUsable+2, 2, raceCap
	cfg.Observe = func(s scheduler.Stats) {
		if granted != nil {
			granted.Add(int64(s.Granted))
		}
		if s.Err != nil && strings.Contains(s.Err.Error(), "referee") {
			fouls.Add(1)
		}
	}
	return cfg
}

// contend submits, leases and ends jobs, with each call on a random node.
func contend(ws []*world, rnd *rand.Rand, worker string, rounds int) {
	ctx := ws[0].ctx
	node := func() *world { return ws[rnd.IntN(len(ws))] }
	var held []lessor.Grant
	for range rounds {
		sub := lessor.Submission{
			Type: new("race"), RequestedUnits: new(1 + rnd.Int64N(3)), Unique: new(rnd.IntN(5) == 0),
		}
		if t := propertyTenants[rnd.IntN(3)]; t != "" {
			sub.TenantID = &t
		}
		if rnd.IntN(3) == 0 {
			sub.LockKey = new(fmt.Sprintf("lock-%d", rnd.IntN(2)))
		}
		// refused calls do not matter here: the referee checks what was stored
		_, _ = node().Submit(ctx, anybody, sub)
		if grants, _, err := node().Request(ctx, anybody, lessor.LeaseRequest{WorkerID: &worker}); err == nil {
			held = append(held, grants...)
		}
		if len(held) > 2 || len(held) > 0 && rnd.IntN(4) == 0 { // keep enough that the bounds are reached
			g := held[0]
			held = held[1:]
			end(ctx, node(), rnd, g)
		}
	}
	for _, g := range held {
		end(ctx, node(), rnd, g)
	}
}

func end(ctx context.Context, w *world, rnd *rand.Rand, g lessor.Grant) {
	switch rnd.IntN(4) {
	case 0:
		_ = w.Release(ctx, anybody, g.Lease.ID, lessor.Release{WorkerID: &g.Lease.WorkerID})
	case 1:
		_, _ = w.Cancel(ctx, anybody, g.Job.ID, true)
	default:
		_ = w.complete(g, "completed")
	}
}

func TestRacingNodesKeepEveryBound(t *testing.T) {
	url, fouls, granted := arena(t)
	var ws []*world
	for range 2 {
		ws = append(ws, node(t, url, raceConfig(fouls, granted), nil))
	}
	race(t, ws, fouls, granted)
}

// TestRacingNodesThatBelieveTheyAreAlone is the same with nodes that decide before they lock, and are wrong most of the
// time: they discard what they decided, and repeat it.
func TestRacingNodesThatBelieveTheyAreAlone(t *testing.T) {
	url, fouls, granted := arena(t)
	var repeated atomic.Int64
	cfg := raceConfig(fouls, granted)
	observe := cfg.Observe
	cfg.Observe = func(s scheduler.Stats) {
		observe(s)
		if errors.Is(s.Err, scheduler.ErrAgain) {
			repeated.Add(1)
		}
	}
	var ws []*world
	for range 2 {
		ws = append(ws, node(t, url, cfg, nil, (*scheduler.Scheduler).ActAsSoleNode))
	}
	race(t, ws, fouls, granted)
	if repeated.Load() == 0 {
		t.Error("no transaction was repeated: the nodes had no conflict")
	}
	t.Logf("%d transactions were repeated", repeated.Load())
}

// race has callers contend on nodes, and fails if the referee failed a commit.
func race(t *testing.T, ws []*world, fouls, granted *atomic.Int64) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { contend(ws, rand.New(rand.NewPCG(uint64(i), 1)), fmt.Sprintf("w%d", i), 150) })
	}
	all.Wait()
	if fouls.Load() != 0 {
		t.Errorf("the referee failed %d commits, want none", fouls.Load())
	}
	if granted.Load() < 100 {
		t.Errorf("only %d leases were granted; too few to say anything", granted.Load())
	}
	for _, w := range ws {
		w.noDrift()
	}
	t.Logf("%d leases were granted", granted.Load())
}

// blind is a store whose node learns nothing of the others.
type blind struct{ scheduler.Store }

func (b blind) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	return b.Store.Update(ctx, func(tx scheduler.Tx) error { return fn(blindTx{tx}) })
}

func (b blind) Send(ctx context.Context, _ scheduler.Footing, fn func(scheduler.Tx) error) (func() error, error) {
	return sendByUpdate(ctx, b, fn)
}

func (b blind) View(ctx context.Context, fn func(scheduler.View) error) error {
	return b.Store.View(ctx, func(v scheduler.View) error { return fn(blindView{v}) })
}

type (
	blindTx   struct{ scheduler.Tx }
	blindView struct{ scheduler.View }
)

func (blindTx) Changes(context.Context, scheduler.Position) ([]scheduler.Change, error) {
	return nil, nil
}

func (blindView) Changes(context.Context, scheduler.Position) ([]scheduler.Change, error) {
	return nil, nil
}

// TestBlindNodesAreCaught shows that the referee works: two nodes each grant all units that there are, and only nodes
// that follow each other stop in time.
func TestBlindNodesAreCaught(t *testing.T) {
	for name, wrap := range map[string]func(scheduler.Store) scheduler.Store{
		"sighted": nil,
		"blind":   func(s scheduler.Store) scheduler.Store { return blind{s} },
	} {
		t.Run(name, func(t *testing.T) {
			url, fouls, _ := arena(t)
			var ws []*world
			for range 2 {
				ws = append(ws, node(t, url, raceConfig(fouls, nil), wrap))
			}
			for i, w := range ws {
				for range raceUsable {
					w.submit(func(s *lessor.Submission) { s.Type = new(fmt.Sprintf("of node %d", i)) })
				}
			}
			for i, w := range ws {
				_, _, _ = w.Request(t.Context(), anybody, lessor.LeaseRequest{
					WorkerID: new("w"), MaxLeases: new(int64(raceUsable)), Types: []string{
						fmt.Sprintf("of node %d", i),
					},
				}) // what it gets is for the referee to judge
			}
			if caught := fouls.Load() > 0; caught != (wrap != nil) {
				t.Errorf("the referee failed %d commits", fouls.Load())
			}
		})
	}
}

func TestTerminatedConnectionsLoseNothing(t *testing.T) {
	cfg := config()
	cfg.TotalUnits = 10_000
	url := pool.Database(t)
	w := node(t, url, cfg, nil)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var acked []lessor.JobID
	lives := func() int { mu.Lock(); defer mu.Unlock(); return len(acked) }
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			insist(ctx, w, fmt.Sprintf("w%d", i), func(id lessor.JobID) {
				mu.Lock()
				defer mu.Unlock()
				acked = append(acked, id)
			})
		})
	}
	kills := 0
	for round := 0; kills < 500; round++ {
		var n int
		err := conn.QueryRow(t.Context(), `select count(pg_terminate_backend(pid)) from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid()`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		kills += n
		if round%10 == 9 { // time for some jobs to be completed, which could then be lost
			before := lives()
			w.eventually("serving between two kills", func() bool { return lives() > before })
		}
		time.Sleep(2 * time.Millisecond)
	}
	before := lives()
	w.eventually("serving after the last kill", func() bool { return lives() > before })
	stop()
	all.Wait()
	for _, id := range acked {
		w.wantState(id, lessor.Completed)
	}
	w.noDrift()
	t.Logf("%d connections ended, %d lives acknowledged, none lost", kills, len(acked))
}

// insist drives jobs through their lives, repeating what was answered 503, and passes those whose end was acknowledged
// to done. Any other error fails the test.
func insist(ctx context.Context, w *world, worker string, done func(lessor.JobID)) {
	again := func(err error) bool {
		switch code := lessor.CodeOf(err); {
		case err == nil || ctx.Err() != nil || errors.Is(err, context.Canceled):
			return false
		case code == lessor.CodeUnavailable || code == lessor.CodeLeaseNotFound:
			time.Sleep(10 * time.Millisecond)
			return code == lessor.CodeUnavailable
		}
		w.t.Errorf("a client sees %v, want nothing but 503", err)
		return false
	}
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s-%d", worker, n)
		_, err := w.Submit(ctx, anybody, lessor.Submission{Type: &worker, IdempotencyKey: &key})
		for again(err) {
			_, err = w.Submit(ctx, anybody, lessor.Submission{Type: &worker, IdempotencyKey: &key})
		}
		ask := lessor.LeaseRequest{WorkerID: &worker, Types: []string{worker}, RequestID: &key, WaitMS: new(int64(100))}
		grants, _, err := w.Request(ctx, anybody, ask)
		for again(err) {
			grants, _, err = w.Request(ctx, anybody, ask)
		}
		for _, g := range grants {
			err := w.complete(g, "completed")
			for again(err) {
				err = w.complete(g, "completed")
			}
			if err == nil {
				done(g.Job.ID)
			}
		}
	}
}
