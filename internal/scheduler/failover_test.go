package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lessor"
	"lessor/internal/pgtest"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres"
)

// failover is a database that can lose its newest commits.
type failover struct {
	db postgres.Config
	// keep makes everything committed so far survive the loss, lose causes the loss, and now returns the server that
	// nodes reach after it.
	keep, lose func() error
	now        func() *pgtest.Server
}

// failovers are the ways in which a database goes back.
var failovers = map[string]func(t *testing.T) failover{
	"standby":                  func(t *testing.T) failover { return promoted(t, false) },
	"standby behind a pooler":  func(t *testing.T) failover { return promoted(t, true) },
	"older copy, same address": restored,
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// promoted has a standby that does not get the newest commits, and becomes the primary.
func promoted(t *testing.T, pooled bool) failover {
	ctx := context.Background()
	primary, err := pgtest.Start(ctx, pgtest.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, primary.Stop()) })
	standby, err := primary.Standby(ctx)
	must(t, err)
	t.Cleanup(func() { must(t, standby.Stop()) })
	f := failover{db: postgres.Config{URL: primary.BothURL(standby)}, now: func() *pgtest.Server { return standby }}
	f.keep = func() error { return errors.Join(standby.Catch(ctx, primary), standby.Cut(ctx)) }
	f.lose = func() error { return errors.Join(primary.Kill(), standby.Promote(ctx)) }
	if pooled {
		pooler, err := pgtest.StartPooler(ctx, primary, pgtest.TransactionMode)
		if errors.Is(err, pgtest.ErrNoPooler) {
			t.Skip(err)
		}
		must(t, err)
		t.Cleanup(func() { must(t, pooler.Stop()) })
		f.db = postgres.Config{URL: pooler.URL("postgres"), Unprepared: true}
		f.lose = func() error { // the old primary lives on: nothing breaks that a node could notice
			return errors.Join(standby.Promote(ctx), pooler.Switch(ctx, standby))
		}
	}
	return f
}

// restored goes back to a copy of its data, on the same timeline.
func restored(t *testing.T) failover {
	ctx := context.Background()
	server, err := pgtest.Start(ctx, pgtest.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	return failover{
		db: postgres.Config{URL: server.URL("postgres")}, now: func() *pgtest.Server { return server },
		keep: func() error { return errors.Join(server.Kill(), server.Copy(ctx), server.Up(ctx)) },
		lose: func() error { return errors.Join(server.Kill(), server.Restore(ctx), server.Up(ctx)) },
	}
}

// lost is what callers saw of the database before it went back.
type lost struct {
	jobs  []lessor.Job
	fence int64
	seq   int64
	lane  int64
}

// newLaneCount is how many lanes are lost, and made afterwards.
const newLaneCount = 12

// TestStoreGoesBack: a database loses its newest commits under three nodes. No worker gets a job of another tenant or
// type because a number was given twice, what is acknowledged afterwards is there, and no number seen before is used
// again.
func TestStoreGoesBack(t *testing.T) {
	for name, make := range failovers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := make(t)
			cfg := config()
			cfg.TotalUnits, cfg.TenantCap = 1000, 1000
			a, b, idle := nodeOn(t, f.db, cfg, nil), nodeOn(t, f.db, cfg, nil), nodeOn(t, f.db, cfg, nil)
			waiting := a.submit(func(s *lessor.Submission) { s.Type = new("waiting") })
			again := a.submit(func(s *lessor.Submission) { s.Type = new("again") })
			sendMessages(a, waiting.ID, 2)
			raiseFences(t, f)
			must(t, f.keep())
			for _, w := range []*world{a, b, idle} {
				w.eventually("ready", func() bool { return w.Ready() == nil && w.Drift(w.ctx) == nil })
			}
			seen := sendMessages(b, waiting.ID, 2)
			l := loseWork(t, f, a, b, again)
			must(t, f.lose())
			g := insistOn(idle, "waiting", nil)
			if g.Job.ID != waiting.ID {
				t.Errorf("the idle node granted %v, want %v", g.Job.ID, waiting.ID)
			}
			newMessage(b, idle, g, seen)
			after(t, f, l, a, b, idle)
			if g := insistOn(b, "again", nil); g.Job.ID != again.ID || g.Lease.Fence <= l.fence {
				t.Errorf("job %v was granted with fence %d, want %v with one above %d", g.Job.ID, g.Lease.Fence,
					again.ID, l.fence)
			}
			for _, w := range []*world{a, b, idle} {
				w.eventually("clean", func() bool { return w.Drift(w.ctx) == nil })
			}
			oneAlert(a)
		})
	}
}

// sendMessages sends n messages to a job and returns the number of the last one.
func sendMessages(w *world, id lessor.JobID, n int) (last int64) {
	for range n {
		last = retry(w, func() (lessor.Message, error) {
			return w.Message(w.ctx, anybody, id, lessor.MessageAsk{Text: new("hello")})
		}).Seq
	}
	return last
}

// newMessage sends a message after others, up to the number seen, were lost. The worker that has seen those gets it at
// another node.
func newMessage(w, other *world, g lessor.Grant, seen int64) {
	w.t.Helper()
	sent := sendMessages(w, g.Job.ID, 1)
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		a := retry(other, func() (lessor.HeartbeatAnswer, error) {
			return other.Heartbeat(other.ctx, anybody, g.Lease.ID, lessor.Heartbeat{
				WorkerID: &g.Lease.WorkerID, MessagesSeen: &seen,
			})
		})
		if n := len(a.Messages); n > 0 && a.Messages[n-1].Seq == sent && sent > seen {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("message %d is not among %v for a worker that has seen %d", sent, a.Messages, seen)
		}
	}
}

// raiseFences has jobs whose next fence is ahead of the clock, so that a fence that is given again is not hidden by
// time going by.
func raiseFences(t *testing.T, f failover) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.db.URL)
	must(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "update queue set fence = (extract(epoch from now()) * 1000)::bigint + 3600000",
		pgx.QueryExecModeSimpleProtocol)
	must(t, err)
}

// loseWork submits and grants what will be lost.
func loseWork(t *testing.T, f failover, a, b *world, again lessor.Job) (l lost) {
	t.Helper()
	for i := range newLaneCount {
		job := retry(a, func() (scheduler.Submitted, error) {
			return a.Submit(a.ctx, anybody, lessor.Submission{
				Type: new(fmt.Sprintf("lost%d", i)), TenantID: new(tenantB.String()), Payload: []byte(`{"of": "B"}`),
			})
		}).Job
		l.jobs = append(l.jobs, job)
	}
	g := insistOn(b, "again", nil)
	if g.Job.ID != again.ID {
		t.Fatalf("granted %v, want %v", g.Job.ID, again.ID)
	}
	l.fence = g.Lease.Fence
	b.eventually("followed", func() bool { return b.Drift(b.ctx) == nil })
	conn, err := pgx.Connect(t.Context(), f.db.URL)
	must(t, err)
	defer conn.Close(t.Context())
	must(t, conn.QueryRow(
		t.Context(), "select (select max(seq) from job), (select max(id) from lane)", pgx.QueryExecModeSimpleProtocol,
	).Scan(&l.seq, &l.lane))
	time.Sleep(600 * time.Millisecond) // every node has served meanwhile, and knows how far the sequences are
	return l
}

// after submits and takes new work at all nodes, and compares it with what was lost.
func after(t *testing.T, f failover, l lost, ws ...*world) {
	t.Helper()
	bound := scheduler.Caller{Actor: "worker", Tenant: &tenantA}
	for i := range newLaneCount {
		w, next := ws[i%len(ws)], ws[(i+1)%len(ws)]
		typ := fmt.Sprintf("new%d", i)
		job := retry(w, func() (scheduler.Submitted, error) {
			return w.Submit(w.ctx, anybody, lessor.Submission{Type: &typ, TenantID: new(tenantA.String())})
		}).Job
		if _, err := next.Job(next.ctx, anybody, job.ID); err != nil {
			t.Errorf("job %s was acknowledged and then: %v", typ, err)
		}
		g := insistOn(next, typ, &bound)
		if g.Job.ID != job.ID || g.Job.Type != typ || g.Job.TenantID != tenantA {
			t.Errorf("asked for %s and got %s of tenant %s", typ, g.Job.Type, g.Job.TenantID)
		}
		if g.Lease.Fence <= l.fence {
			t.Errorf("fence %d was given, and %d before", g.Lease.Fence, l.fence)
		}
		next.mustCompleteAs(bound, g, "completed")
	}
	for _, job := range l.jobs {
		if _, err := ws[0].Job(ws[0].ctx, anybody, job.ID); lessor.CodeOf(err) != lessor.CodeJobNotFound {
			t.Errorf("job %s, which was lost: %v", job.Type, err)
		}
	}
	var seq, lane int64
	conn, err := pgx.Connect(t.Context(), f.now().URL("postgres"))
	must(t, err)
	defer conn.Close(t.Context())
	must(t, conn.QueryRow(
		t.Context(), "select min(j.seq), min(j.lane) from job j join lane l on l.id = j.lane where l.type like 'new%'",
	).Scan(&seq, &lane))
	if seq <= l.seq || lane <= l.lane {
		t.Errorf("seq %d and lane %d were given, and %d and %d before", seq, lane, l.seq, l.lane)
	}
}

// retry repeats a call that is answered 503.
func retry[T any](w *world, call func() (T, error)) T {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		v, err := call()
		if err == nil {
			return v
		}
		if lessor.CodeOf(err) != lessor.CodeUnavailable || time.Now().After(end) {
			w.t.Fatalf("a caller gets %v", err)
		}
	}
}

// insistOn requests a job of a type until there is one.
func insistOn(w *world, typ string, c *scheduler.Caller) lessor.Grant {
	w.t.Helper()
	if c == nil {
		c = &anybody
	}
	for range 30 {
		grants := retry(w, func() ([]lessor.Grant, error) {
			grants, _, err := w.Request(
				w.ctx, *c, lessor.LeaseRequest{WorkerID: new("worker"), Types: []string{typ}, WaitMS: new(int64(1000))},
			)
			return grants, err
		})
		if len(grants) > 0 {
			return grants[0]
		}
	}
	w.t.Fatalf("no job of type %s is granted", typ)
	return lessor.Grant{}
}

// oneAlert fails unless there is one alert that the store went back.
func oneAlert(w *world) {
	w.t.Helper()
	alerts := func() (n int) {
		open, _, err := w.Alerts(w.ctx, anybody, lessor.AlertFilter{Limit: 100})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, a := range open {
			if a.Kind == lessor.AlertStoreWentBack {
				n++
			}
		}
		return n
	}
	w.eventually("alerted", func() bool { return alerts() > 0 })
	if n := alerts(); n != 1 {
		w.t.Errorf("%d alerts, want one", n)
	}
}
