package worker_test

import (
	"context"
	"fmt"
	"os"

	"lessor/client"
	"lessor/node"
	"lessor/worker"
)

// A worker for one type of job. The server is in the same program, in place of a `lessor serve`.
func Example() {
	folder, err := os.MkdirTemp("", "lessor")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	n, err := node.Open(context.Background(), node.Config{Data: folder}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	serving, endServer := context.WithCancel(context.Background())
	defer endServer()
	listener, connection := node.Pipe()
	served := make(chan error)
	go func() { served <- n.Serve(serving, listener) }()

	c, err := client.New(client.Config{HTTP: connection})
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := worker.New(worker.Config{Client: c})
	if err != nil {
		fmt.Println(err)
		return
	}
	working, endWorker := context.WithCancel(context.Background())
	defer endWorker()
	type mail struct{ To string }
	worker.Handle(w, "mail", func(_ context.Context, job *worker.Job[mail]) (any, error) {
		fmt.Println("mail to", job.Payload.To)
		endWorker() // a real worker ends with its process: w.RunUntilSignal
		return map[string]string{"sent_to": job.Payload.To}, nil
	})
	job, err := c.Submit(working, "mail", mail{To: "ann"}, nil)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println("worker ended:", w.Run(working))
	done, err := c.Job(serving, job.ID)
	fmt.Println(done.State, string(done.Result), err)

	c.Close()
	endServer()
	fmt.Println("server ended:", <-served, n.Close())
	// Output:
	// mail to ann
	// worker ended: <nil>
	// completed {"sent_to":"ann"} <nil>
	// server ended: <nil> <nil>
}
