package worker_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/node"
	"lessor/worker"
)

// asWorker is the environment variable that turns this test binary into a worker of the server it names.
const asWorker = "LESSOR_TEST_WORKER_OF"

// TestWorkerProcess is no test, but the process that TestSIGTERMUnderLoad starts and stops.
func TestWorkerProcess(t *testing.T) {
	server := os.Getenv(asWorker)
	if server == "" {
		t.Skip("for TestSIGTERMUnderLoad only")
	}
	c, err := client.New(client.Config{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w, err := worker.New(worker.Config{
		Client: c, Concurrency: 200, DrainTimeout: time.Second,
		KillGrace: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	worker.Handle(w, "load", func(ctx context.Context, job *worker.Job[order]) (any, error) {
		ctx, done := context.WithTimeout(ctx, 100*time.Millisecond+rand.N(10*time.Second))
		defer done()
		_ = beatUntil(ctx, job.Beat, 50*time.Millisecond)
		if cause := context.Cause(ctx); errors.Is(cause, worker.ErrDraining) {
			return nil, cause
		}
		return nil, nil
	})
	if err := w.RunUntilSignal(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// serve runs a server with room for n leases on a loopback port until the test ends.
func serve(t *testing.T, n int) (url string, c *client.Client) {
	t.Helper()
	cfg := node.Config{Data: t.TempDir()}
	cfg.Capacity.TotalUnits, cfg.Capacity.ReserveUnits, cfg.Capacity.Busy = n, 1, new(0)
	s, err := node.Open(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url = "http://" + ln.Addr().String()
	if c, err = client.New(client.Config{Server: url}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		c.Close()
		cancel()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return url, c
}

func TestSIGTERMUnderLoad(t *testing.T) {
	url, c := serve(t, 300)
	page := make([]lessor.Submission, 1000)
	for i := range page {
		page[i].Type = new("load")
	}
	if _, err := c.SubmitBatch(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(os.Args[0], "-test.run=^TestWorkerProcess$")
	process.Env = append(os.Environ(), asWorker+"="+url)
	var out bytes.Buffer
	process.Stdout, process.Stderr = &out, &out
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = process.Process.Kill() }() // unless it has ended
	for loaded := false; !loaded; time.Sleep(10 * time.Millisecond) {
		st, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done, _, err := c.Jobs(t.Context(), lessor.JobFilter{State: lessor.Completed})
		if err != nil {
			t.Fatal(err)
		}
		loaded = st.ActiveLeases == 200 && len(done) >= 10
	}
	start := time.Now()
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("the worker ended with %v:\n%s", err, &out)
	}
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("the worker took %s to end, want at most drain timeout, kill grace and the last 5 s: 8 s", took)
	}
	count := map[lessor.State]int{}
	for job, err := range c.AllJobs(t.Context(), lessor.JobFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		count[job.State]++
		if want := map[lessor.State]int{lessor.Completed: 1, lessor.Queued: 0}[job.State]; job.Attempt != want ||
			job.Error != nil {
			t.Errorf("a job is %s at attempt %d with error %v", job.State, job.Attempt, job.Error)
		}
	}
	if count[lessor.Completed]+count[lessor.Queued] != len(page) || count[lessor.Completed] == 0 {
		t.Errorf("the jobs are %v, want all %d completed or queued", count, len(page))
	}
	t.Logf("%v after %s", count, time.Since(start))
}
