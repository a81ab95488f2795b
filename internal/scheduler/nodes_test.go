package scheduler_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lessor"
	"lessor/internal/pgtest"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres"
)

var pool = &pgtest.Pool{Migrate: func(ctx context.Context, url string) error {
	s, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}}

func TestMain(m *testing.M) { os.Exit(pool.Main(m)) }

// nodes starts schedulers on one database, each with a store of its own, in real time.
func nodes(t *testing.T, n int, cfg scheduler.Config, wrap func(scheduler.Store) scheduler.Store) []*world {
	t.Helper()
	url := pool.Database(t)
	ws := make([]*world, n)
	for i := range ws {
		ws[i] = node(t, url, cfg, wrap)
	}
	return ws
}

func node(
	t *testing.T, url string, cfg scheduler.Config, wrap func(scheduler.Store) scheduler.Store,
	before ...func(*scheduler.Scheduler),
) *world {
	t.Helper()
	return nodeOn(t, postgres.Config{URL: url}, cfg, wrap, before...)
}

// nodeOn is node over a store with settings.
func nodeOn(
	t *testing.T, db postgres.Config, cfg scheduler.Config, wrap func(scheduler.Store) scheduler.Store,
	before ...func(*scheduler.Scheduler),
) *world {
	t.Helper()
	store, err := postgres.Open(t.Context(), db)
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	w := &world{t: t, ctx: t.Context(), cfg: cfg, store: store}
	if wrap != nil {
		w.store = wrap(store)
	}
	w.Scheduler = scheduler.New(w.store, cfg)
	for _, do := range before {
		do(w.Scheduler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	w.halt = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v, want nil after a clean stop", err)
		}
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	t.Cleanup(w.halt)
	w.eventually("ready", func() bool { return w.Ready() == nil })
	return w
}

// eventually waits until a condition holds, at most a minute.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not %s within a minute", what)
		}
	}
}

func TestLifeOverThreeNodes(t *testing.T) {
	ws := nodes(t, 3, config(), nil)
	a, b, c := ws[0], ws[1], ws[2]
	job := a.submit(nil)
	g := b.lease("worker-1", waiting(5000))
	if g.Job.ID != job.ID {
		t.Fatalf("granted %v, want %v", g.Job.ID, job.ID)
	}
	c.mustBeat(g)
	if err := a.Release(a.ctx, anybody, g.Lease.ID, lessor.Release{WorkerID: &g.Lease.WorkerID}); err != nil {
		t.Fatalf("release on another node: %v", err)
	}
	g = c.lease("worker-2", waiting(5000))
	if _, err := a.Cancel(a.ctx, anybody, job.ID, false); err != nil {
		t.Fatal(err)
	}
	if ans := b.mustBeat(g); !ans.CancelRequested {
		t.Error("a heartbeat on one node is not answered with the cancel on another")
	}
	b.mustComplete(g, "completed")
	c.wantState(job.ID, lessor.Completed)
	for _, w := range ws {
		w.noDrift()
	}
}

// soleStore is the store of a node that believes that it is alone, and so does not publish its changes.
type soleStore struct{ scheduler.Store }

func (d soleStore) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	return d.Store.Update(ctx, func(tx scheduler.Tx) error { return fn(soleTx{tx}) })
}

func (d soleStore) Send(ctx context.Context, _ scheduler.Footing, fn func(scheduler.Tx) error) (func() error, error) {
	return sendByUpdate(ctx, d, fn)
}

type soleTx struct{ scheduler.Tx }

func (soleTx) SoleNode() bool { return true }

// checked is the store of a node whose check of the fold fails: it calls before, and then the settings cannot be read.
type checked struct {
	scheduler.Store
	before func()
}

type ofCheck struct{}

type failingView struct{ scheduler.View }

func (failingView) Policies(context.Context) ([]rules.Policy, error) {
	return nil, scheduler.ErrUnreachable
}

func (c checked) View(ctx context.Context, fn func(scheduler.View) error) error {
	if ctx.Value(ofCheck{}) == nil {
		return c.Store.View(ctx, fn)
	}
	c.before()
	return c.Store.View(ctx, func(v scheduler.View) error { return fn(failingView{v}) })
}

// TestCheckThatFailsLosesNothing: a check of the fold fails after it followed a change and before it read the settings
// that the change names. The node reads them again.
func TestCheckThatFailsLosesNothing(t *testing.T) {
	url := pool.Database(t)
	here := node(t, url, config(), nil)
	there := node(t, url, config(), func(s scheduler.Store) scheduler.Store {
		return checked{s, func() { here.setTenant(tenantA, lessor.TenantAsk{Paused: lessor.SetTo(true)}) }}
	})
	there.submit(nil) // both know of each other then
	here.mustComplete(here.lease("worker", waiting(30_000)), "completed")
	there.submit(func(s *lessor.Submission) { s.TenantID = new(tenantA.String()) })
	if err := there.Drift(context.WithValue(there.ctx, ofCheck{}, true)); err == nil {
		t.Error("the check succeeded without the settings")
	}
	if _, denial := there.ask("worker", nil); denial == nil {
		t.Error("a job of a tenant that is paused was granted")
	}
	there.noDrift()
}

// TestUnpublishedChangesAreReadFromTheTables: a node misses no change of another node that has not noticed it yet.
func TestUnpublishedChangesAreReadFromTheTables(t *testing.T) {
	url := pool.Database(t)
	lone := node(t, url, config(), func(s scheduler.Store) scheduler.Store { return soleStore{s} })
	other := node(t, url, config(), nil)
	for range 3 {
		job := lone.submit(nil)
		g := other.lease("worker-1", waiting(5000))
		if g.Job.ID != job.ID {
			t.Fatalf("granted %v, want %v", g.Job.ID, job.ID)
		}
		lone.mustComplete(g, "completed")
		other.wantState(job.ID, lessor.Completed)
	}
	lone.noDrift()
	other.noDrift()
}

func TestWaitingRequestWakesAtAnotherNodesSubmission(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	granted := make(chan time.Time, 1)
	go func() {
		if g, _ := ws[1].ask("worker-1", waiting(10_000)); g != nil {
			granted <- time.Now()
		}
	}()
	time.Sleep(300 * time.Millisecond) // time for the request to be parked; one that comes later only wakes sooner
	start := time.Now()
	ws[0].submit(nil)
	if took := (<-granted).Sub(start); took > time.Second {
		t.Errorf("woken after %v, want about 100 ms", took)
	} else {
		t.Logf("woken after %v", took)
	}
}

func TestSettingsReachOtherNodes(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	ws[1].submit(nil)
	if _, err := ws[0].SetDraining(ws[0].ctx, anybody, true); err != nil {
		t.Fatal(err)
	}
	if _, d := ws[1].ask("worker-1", nil); d == nil || d.Code != lessor.Draining {
		t.Errorf("another node answers %+v, want draining", d)
	}
	if _, err := ws[1].SetCapacity(ws[1].ctx, anybody, lessor.CapacityAsk{Busy: lessor.SetTo(int64(9))}); err != nil {
		t.Fatal(err)
	}
	if _, err := ws[0].SetDraining(ws[0].ctx, anybody, false); err != nil {
		t.Fatal(err)
	}
	if c, err := ws[0].Capacity(ws[0].ctx); err != nil || c.Busy != 9 {
		t.Errorf("busy is %d (%v) on the other node, want 9", c.Busy, err)
	}
}

// A rating that is configured on one node counts on the others too, like one that is sampled there.
func TestConfiguredRatingCountsOnEveryNode(t *testing.T) {
	url := pool.Database(t)
	idle := func() (lessor.BusyInputs, error) { return lessor.BusyInputs{SampledAt: lessor.At(time.Now())}, nil }
	busy, host := config(), config()
	busy.Busy, busy.Sample = new(7), nil // a node with a configured rating measures nothing
	host.Busy, host.Sample = nil, idle
	node(t, url, busy, nil)
	w := node(t, url, host, nil)
	if c, err := w.Capacity(w.ctx); err != nil || c.Busy != 7 || c.BusySource != lessor.BusyHost {
		t.Errorf("beside a node that is configured as busy 7, an idle one is rated %d (%s), %v", c.Busy, c.BusySource,
			err)
	}
}

func TestNodesNeverGrantOneJobTwice(t *testing.T) {
	cfg := config()
	cfg.TotalUnits = 100_000
	ws := nodes(t, 2, cfg, nil)
	const jobs = 10_000
	for i := range jobs / 1000 {
		subs := make([]lessor.Submission, 1000)
		for k := range subs {
			subs[k] = lessor.Submission{Type: new("race")}
		}
		if _, err := ws[i%2].SubmitBatch(t.Context(), anybody, subs); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	seen := map[lessor.JobID]string{}
	var all sync.WaitGroup
	for i := range 8 {
		w, worker := ws[i%2], fmt.Sprintf("worker-%d", i)
		all.Go(func() {
			for {
				grants, denial := w.askMany(worker, func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(7)) })
				if denial != nil {
					return
				}
				mu.Lock()
				for _, g := range grants {
					if first, twice := seen[g.Job.ID]; twice {
						t.Errorf("job %v was granted to %s and to %s", g.Job.ID, first, worker)
					}
					seen[g.Job.ID] = worker
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(seen) != jobs {
		t.Errorf("%d jobs were granted, want %d", len(seen), jobs)
	}
	for _, w := range ws {
		w.noDrift()
	}
}

// TestBrakeIsPulledOnceByAllNodes lets all leases fall silent while two nodes sweep: the node that finds it first pulls
// the brake for both.
func TestBrakeIsPulledOnceByAllNodes(t *testing.T) {
	var pulled, ended atomic.Int64
	cfg := config()
	cfg.TTL, cfg.Sweep = 10*time.Second, 50*time.Millisecond // time for 20 leases on a busy machine
	cfg.Observe = func(s scheduler.Stats) {
		if s.MassExpiry && s.Err == nil {
			pulled.Add(1)
		}
		if s.Err == nil {
			for _, e := range s.Ended {
				if e.Outcome == rules.OutcomeExpired {
					ended.Add(1)
				}
			}
		}
	}
	ws := nodes(t, 2, cfg, nil)
	for i := range 20 {
		ws[0].submit(nil)
		ws[i%2].lease(fmt.Sprintf("worker-%d", i%5), waiting(5000))
	}
	brake := func(w *world) bool {
		st, err := w.Status(w.ctx, anybody)
		return err == nil && !st.BrakeUntil.IsZero()
	}
	for _, w := range ws {
		w.eventually("braked", func() bool { return brake(w) })
	}
	time.Sleep(10 * cfg.Sweep) // both have swept by then
	if pulled.Load() != 1 || ended.Load() != 0 {
		t.Errorf("the brake was pulled %d times and %d leases ended, want once and none", pulled.Load(), ended.Load())
	}
}

// TestTwoNodesRaiseOneAlert: the monitors of two nodes may find the same fault at once.
func TestTwoNodesRaiseOneAlert(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	for i := range 30 {
		a := lessor.Alert{Kind: lessor.AlertHung, Subject: fmt.Sprint("job ", i), Message: "it hangs"}
		var both sync.WaitGroup
		for _, w := range ws {
			both.Go(func() {
				if err := w.Raise(w.ctx, a); err != nil {
					t.Errorf("raise %s: %v", a.Subject, err)
				}
			})
		}
		both.Wait()
	}
	open, _, err := ws[0].Alerts(t.Context(), anybody, lessor.AlertFilter{Open: true, Limit: 100})
	if err != nil || len(open) != 30 {
		t.Errorf("%d alerts are open (%v), want 30", len(open), err)
	}
}
