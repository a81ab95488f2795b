// Minimal runs jobs of type greet until it receives SIGTERM or SIGINT, and finishes the jobs that it has started.
//
//	lessor submit greet --payload '{"name": "world"}'
package main

import (
	"context"
	"fmt"
	"os"

	"lessor/client"
	"lessor/worker"
)

func run() error {
	c, err := client.New(client.Config{Server: os.Getenv("LESSOR_SERVER"), Token: os.Getenv("LESSOR_TOKEN")})
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Client: c})
	if err != nil {
		return err
	}
	worker.Handle(w, "greet", func(_ context.Context, job *worker.Job[struct{ Name string }]) (any, error) {
		return "Hello, " + job.Payload.Name + "!", nil
	})
	return w.RunUntilSignal(context.Background())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
