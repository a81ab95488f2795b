package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/pgtest"
)

const tickTenant = "00000000-0000-0000-0000-00000000000a"

// everySecond is the body of a definition that ticks each second.
func everySecond(id string) lessor.Envelope {
	return lessor.Envelope{
		JobID: &id, HandlerID: new("tick.run"), LockKey: new("lock." + id),
		Schedule: &lessor.ScheduleAsk{Type: new("interval"), Seconds: new(int64(1))},
		CatchUp:  new("all"), Overlap: new("allow"),
	}
}

// TestEvidenceB runs 200 definitions at 1 s intervals for a minute on three processes with one PostgreSQL, and kills
// and restarts nodes all the time. Every tick has exactly one row, and every row its job.
func TestEvidenceB(t *testing.T) {
	t.Parallel()
	const definitions, minute = 200, 60 * time.Second
	k := newCluster(t, pgtest.Options{Durable: true})
	c := k.client()
	m := lessor.Manifest{ModuleID: new("evidence"), Version: new("1"), TenantID: new(tickTenant)}
	for i := range definitions {
		m.Jobs = append(m.Jobs, everySecond(fmt.Sprintf("tick.%03d", i)))
	}
	if _, err := c.Apply(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	kills := 0
	for end := time.Now().Add(minute); time.Now().Before(end); kills++ {
		time.Sleep(500*time.Millisecond + rand.N(time.Second))
		s := k.nodes[rand.IntN(len(k.nodes))]
		s.kill()
		time.Sleep(rand.N(500 * time.Millisecond))
		for s.try() != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	for i := range definitions {
		if _, err := c.Pause(t.Context(), *m.Jobs[i].JobID); err != nil {
			t.Fatal(err)
		}
	}
	ticks := 0
	runs := map[lessor.JobID]bool{}
	for i := range definitions {
		ticks += checkTicks(t, c, *m.Jobs[i].JobID, minute, runs)
	}
	jobs := 0
	for _, err := range c.AllJobs(t.Context(), lessor.JobFilter{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		jobs++
	}
	if jobs != ticks || len(runs) != ticks {
		t.Errorf("%d ticks made %d jobs and name %d", ticks, jobs, len(runs))
	}
	t.Logf("%d ticks of %d definitions over %d kills of nodes: one row and one job each", ticks, definitions, kills)
}

// checkTicks checks that a definition's ticks have neither gaps nor duplicates, from its first tick to its pause.
func checkTicks(t *testing.T, c *client.Client, id string, least time.Duration, runs map[lessor.JobID]bool) (n int) {
	t.Helper()
	d, err := c.Definition(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	next := d.CreatedAt.Add(time.Second)
	for k, err := range c.AllTicks(t.Context(), id, lessor.TickFilter{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		if k.TickAt != next || k.RunID == nil || runs[*k.RunID] {
			t.Fatalf("%s: the row %+v comes where that of %s should", id, k, next)
		}
		runs[*k.RunID] = true
		next = next.Add(time.Second)
		n++
	}
	if covered := next.Sub(d.CreatedAt); covered < least {
		t.Errorf("%s: the ticks cover %v, want %v", id, covered, least)
	}
	return n
}

// workerVariable is the environment variable that makes this test binary a worker of the server at that address.
const workerVariable = "LESSOR_CHAOS_WORKER"

// doomed is a worker that takes a job and sends heartbeats until it is killed.
func doomed(server string) {
	c, err := client.New(client.Config{Server: server})
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	request := lessor.LeaseRequest{WorkerID: new("doomed"), WaitMS: new(int64(30_000))}
	grants, _, err := c.Request(context.Background(), request)
	if err != nil || len(grants) == 0 {
		fmt.Fprintln(os.Stdout, "no job:", err)
		return
	}
	for {
		_, err := c.Heartbeat(context.Background(), grants[0].Lease.ID, lessor.Heartbeat{WorkerID: new("doomed")})
		fmt.Fprintln(os.Stdout, "beat", err)
		time.Sleep(100 * time.Millisecond)
	}
}

// TestEvidenceC kills a worker during a run: its lease expires, another worker repeats the job, and `attempts` counts
// it.
func TestEvidenceC(t *testing.T) {
	s := start(t, "LESSOR_LEASE_TTL=1s", "LESSOR_CAPACITY_BUSY=0")
	c := s.client()
	m := lessor.Manifest{
		ModuleID: new("evidence"), Version: new("1"), TenantID: new(tickTenant),
		Jobs: []lessor.Envelope{everySecond("tick.once")},
	}
	m.Jobs[0].Schedule.Seconds = new(int64(3600))
	if _, err := c.Apply(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	run, err := c.Trigger(t.Context(), "tick.once", nil)
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(os.Args[0], "-test.run=^$")
	worker.Env = append(os.Environ(), workerVariable+"=http://"+s.addr)
	out := &strings.Builder{}
	var mu sync.Mutex
	worker.Stdout = writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return out.Write(p)
	})
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if j, err := c.Job(t.Context(), run); err == nil && j.State == lessor.Running {
			break
		}
		if time.Now().After(deadline) {
			_ = worker.Process.Kill()
			mu.Lock()
			t.Fatalf("the worker did not start: %s", out)
		}
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait() // it was killed
	grants, _, err := c.Request(t.Context(), lessor.LeaseRequest{WorkerID: new("heir"), WaitMS: new(int64(30_000))})
	if err != nil || len(grants) != 1 || grants[0].Job.ID != run {
		t.Fatalf("another worker gets %+v, %v", grants, err)
	}
	done := lessor.Completion{WorkerID: new("heir"), Status: new("completed")}
	if err := c.Complete(t.Context(), grants[0].Lease.ID, done); err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(t.Context(), run)
	if err != nil || r.Attempts != 2 || r.Status != lessor.RunSuccess {
		t.Errorf("the run is %+v, %v; want two attempts and a success", r, err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
