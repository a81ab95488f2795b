package node_test

import (
	"context"
	"fmt"
	"os"

	"lessor"
	"lessor/node"
)

// This program runs a server without a network. It submits, leases and completes a job.
func Example() {
	folder, err := os.MkdirTemp("", "lessor")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	n, err := node.Open(ctx, node.Config{Data: folder}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }() // or n.Serve(ctx, listener), which also answers HTTP

	if _, err := n.Submit(ctx, "mail", map[string]string{"to": "ann"}, nil); err != nil {
		fmt.Println(err)
	}
	worker := "worker-1"
	grants, denial, err := n.Request(ctx, lessor.LeaseRequest{WorkerID: &worker, Types: []string{"mail"}})
	if err != nil || denial != nil {
		fmt.Println(denial, err)
		return
	}
	fmt.Printf("send %s\n", grants[0].Job.Payload)
	err = n.Complete(ctx, grants[0].Lease.ID, lessor.Completion{WorkerID: &worker, Status: new("completed")})
	fmt.Println("completed:", err == nil)

	stop()
	fmt.Println("stopped:", <-ended, n.Close())
	// Output:
	// send {"to":"ann"}
	// completed: true
	// stopped: <nil> <nil>
}
