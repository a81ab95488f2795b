package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"lessor"
	"lessor/client"
)

// A minimal worker: ask for a job, keep its lease alive while working, say how it went. Package worker does this with
// many jobs at once, draining and batching.
func Example() {
	ctx := context.Background()
	server := sampleServer()
	defer server.Close()
	c, err := client.New(client.Config{Server: server.URL, UserAgent: "example/1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	for {
		grants, denial, err := c.Request(ctx, lessor.LeaseRequest{
			WorkerID: new("worker-1"), Types: []string{"mail"}, WaitMS: new(int64(30_000)),
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		if denial != nil {
			fmt.Println(denial.Reason)
			return // a real worker asks again after denial.RetryAfterMS
		}
		if err := run(ctx, c, grants[0]); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// send mail {"to":"ann"}
	// No eligible jobs
}

// run works on one grant and beats as often as the server asks.
func run(ctx context.Context, c *client.Client, g lessor.Grant) error {
	work, stop := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for beat := time.NewTicker(time.Duration(g.Lease.HeartbeatAfterMS) * time.Millisecond); ; {
			answer, err := c.Heartbeat(work, g.Lease.ID, lessor.Heartbeat{WorkerID: &g.Lease.WorkerID})
			if errors.Is(err, lessor.ErrLeaseNotFound) || answer.CancelRequested {
				// stop working: somebody else may have begun
				stop(errors.New("the lease is lost or the job is cancelled"))
			}
			select {
			case <-beat.C:
			case <-work.Done():
				beat.Stop()
				return
			}
		}
	}()
	fmt.Println("send", g.Job.Type, string(g.Job.Payload)) // the work itself, which should watch its context
	stop(nil)
	<-done
	return c.Complete(ctx, g.Lease.ID, lessor.Completion{WorkerID: &g.Lease.WorkerID, Status: new("completed")})
}

// sampleServer stands in for `lessor serve` with one job queued.
func sampleServer() *httptest.Server {
	const base, lease = "/api/system/scheduler/leases/", "0196a1b2-0000-7000-8000-00000000001a"
	queued := true
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+base+"request", func(w http.ResponseWriter, _ *http.Request) {
		if !queued {
			fmt.Fprint(w, `{"denied":true,"code":"no_eligible_job","reason":"No eligible jobs","retry_after_ms":1500}`)
			return
		}
		queued = false
		fmt.Fprint(w, `{"denied":false,"lease":{"lease_id":"`+lease+`",
			"worker_id":"worker-1","heartbeat_after_ms":20000},
			"job":{"type":"mail","priority":"normal","payload":{"to":"ann"}}}`)
	})
	mux.HandleFunc("POST "+base+lease+"/{verb}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"ok":true}`)
	})
	return httptest.NewServer(mux)
}
