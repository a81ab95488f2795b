// Drain runs jobs of type count, which take a while. When the program is stopped in the middle of a job, it saves a
// checkpoint and gives the job back, which costs no attempt; the next worker continues from there.
//
//	lessor submit count --payload '{"to": 600}'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"lessor/client"
	"lessor/worker"
)

// step is one piece of work. It is too short to need a checkpoint in the middle.
const step = 100 * time.Millisecond

// Count is the payload.
type Count struct {
	To int `json:"to"`
}

// Counted is the result.
type Counted struct {
	Counted     int `json:"counted"`
	ResumedFrom int `json:"resumed_from"`
}

func count(ctx context.Context, job *worker.Job[Count]) (any, error) {
	var n int
	if _, err := job.LoadCheckpoint(&n); err != nil {
		return nil, err
	}
	from := n
	for n < job.Payload.To {
		select {
		case <-time.After(step):
			n++
			job.Report(float64(n)/float64(job.Payload.To), fmt.Sprintf("counted to %d", n)) // which beats
		case <-job.Draining():
			if err := job.SaveCheckpoint(ctx, n); err != nil {
				return nil, err
			}
			return nil, worker.Release(0)
		case <-ctx.Done(): // the lease is lost, or the job cancelled
			return nil, context.Cause(ctx)
		}
	}
	return Counted{Counted: n, ResumedFrom: from}, nil
}

func run() error {
	c, err := client.New(client.Config{Server: os.Getenv("LESSOR_SERVER"), Token: os.Getenv("LESSOR_TOKEN")})
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Client: c, Concurrency: 50, DrainTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	worker.Handle(w, "count", count)
	return w.RunUntilSignal(context.Background())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
