// Package demo simulates tenants and workers on an embedded server, so that a newcomer sees leases live, expire and
// move. It calls the server over HTTP like any client, requests only types that begin with "demo.", and stops with its
// context.
package demo

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/pause"
)

// Config says which server to use.
type Config struct {
	Server string
	Token  string
	Out    io.Writer // receives a line for each event
	Hint   string    // the command that lists the jobs
}

// tenants have fixed ids, so that a second start uses the same three.
var tenants = []struct{ id, name string }{
	{"0000de30-0000-7000-8000-000000000001", "Aurora"},
	{"0000de30-0000-7000-8000-000000000002", "Borealis"},
	{"0000de30-0000-7000-8000-000000000003", "Cumulus"},
}

var types = []string{"demo.report", "demo.cleanup", "demo.sync"}

// The pace of the demo: slow enough to read, and fast enough that something happens within seconds.
const (
	submitEvery = 1500 * time.Millisecond
	maxBacklog  = 40
	ttl         = 5 * time.Second
	shortest    = 2 * time.Second
	longest     = 9 * time.Second
	restart     = 10 * time.Second
)

// HintIndent is the number of characters before the hint in the introduction.
const HintIndent = 18

const intro = `
  demo: three tenants submit and schedule jobs of types demo.*, and four workers
        run them. Leases last 5 s. demo-worker-4 dies in every third job: watch
        its lease expire and the job move to another worker.
        See it:   %s
                  also leases, workers, schedules, circuits, runs, top
        Stop it:  Ctrl-C. What it submitted stays in the data folder.

`

type demo struct {
	client *client.Client
	mu     sync.Mutex
	out    io.Writer
}

// Run simulates until ctx is done. It returns an error only if it cannot start.
func Run(ctx context.Context, cfg Config) error {
	c, err := client.New(client.Config{Server: cfg.Server, Token: cfg.Token, UserAgent: "lessor-demo"})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer c.Close()
	d := &demo{client: c, out: cfg.Out}
	d.print(intro, cfg.Hint)
	var all sync.WaitGroup
	all.Go(func() { d.schedule(ctx) })
	all.Go(func() { d.submit(ctx) })
	for n := 1; n <= 4; n++ {
		all.Go(func() { d.work(ctx, n) })
	}
	all.Wait()
	return nil
}

func (d *demo) print(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintf(d.out, format, args...) // a closed terminal must not stop the server
}

// submit adds a job for a random tenant at intervals, unless too many wait.
func (d *demo) submit(ctx context.Context) {
	for pause.For(ctx, submitEvery) {
		st, err := d.client.Status(ctx)
		if err != nil || st.QueueDepth.Normal+st.QueueDepth.High > maxBacklog {
			continue
		}
		t := tenants[rand.IntN(len(tenants))]
		typ, priority := types[rand.IntN(len(types))], "normal"
		if rand.IntN(6) == 0 {
			priority = "high"
		}
		job, err := d.client.SubmitJob(ctx, lessor.Submission{
			Type: &typ, TenantID: &t.id, Priority: &priority, Tags: []string{"demo", t.name},
		})
		if err == nil {
			d.print("  demo: %-8s submits %s (%s)\n", t.name, typ, short(job.Job.ID.UUID))
		}
	}
}

// work is one simulated worker. The fourth dies in the middle of every third job, and a new one takes its name later.
func (d *demo) work(ctx context.Context, n int) {
	name := fmt.Sprintf("demo-worker-%d", n)
	wait, ask, most := int64(10_000), ttl.Milliseconds(), int64(1)
	for jobs := 1; ctx.Err() == nil; {
		grants, denial, err := d.client.Request(ctx, lessor.LeaseRequest{
			WorkerID: &name, Types: append([]string{flaky}, types...), WaitMS: &wait, TTLMS: &ask, MaxLeases: &most,
		})
		switch {
		case err != nil:
			pause.For(ctx, time.Second)
		case denial != nil:
			pause.For(ctx, time.Duration(denial.RetryAfterMS)*time.Millisecond)
		default:
			dies := n == 4 && jobs%3 == 0
			d.run(ctx, name, grants[0], dies)
			jobs++
		}
	}
}

func (d *demo) run(ctx context.Context, name string, g lessor.Grant, dies bool) {
	takes := shortest + rand.N(longest-shortest)
	end := time.Now().Add(takes)
	attempt := ""
	if g.Job.Attempt > 1 {
		attempt = fmt.Sprintf(", attempt %d: its last worker was lost", g.Job.Attempt)
	}
	d.print("  demo: %s takes %s (%s%s)\n", name, g.Job.Type, short(g.Job.ID.UUID), attempt)
	beat := time.Duration(g.Lease.HeartbeatAfterMS) * time.Millisecond
	for left := takes; left > 0; left = time.Until(end) {
		progress := 1 - float64(left)/float64(takes)
		_, err := d.client.Heartbeat(ctx, g.Lease.ID, lessor.Heartbeat{WorkerID: &name, Progress: &progress})
		if err != nil {
			return
		}
		if dies && progress > 0.3 {
			d.print("  demo: %s dies while it holds %s; its heartbeats stop\n", name, short(g.Job.ID.UUID))
			pause.For(ctx, restart)
			return
		}
		if !pause.For(ctx, min(beat, left)) {
			d.giveBack(name, g)
			return
		}
	}
	done := lessor.Completion{WorkerID: &name, Status: new("completed")}
	if g.Job.Type == flaky {
		done.Status, done.Error = new("failed"), new("the demo makes it fail")
	}
	_ = d.client.Complete(ctx, g.Lease.ID, done) // fails only if the lease is lost
}

// giveBack releases a lease when the demo stops, so that the lease does not have to expire.
func (d *demo) giveBack(name string, g lessor.Grant) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = d.client.Release(ctx, g.Lease.ID, lessor.Release{WorkerID: &name}) // best effort: otherwise it expires
}

// short returns the end of an id, because ids that were made at about the same time begin alike.
func short(u lessor.UUID) string { return "…" + u.String()[24:] }
