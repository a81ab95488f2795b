package node

import (
	"context"
	"testing"

	"lessor"
)

// TestCallsWaitForAStartingNode submits while Run starts, as the example in the package comment does.
func TestCallsWaitForAStartingNode(t *testing.T) {
	n, err := Open(t.Context(), testConfig(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	submitted, done := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := n.Submit(ctx, "early", nil, nil)
		submitted <- err
	}()
	go func() { done <- n.Run(ctx) }()
	if err := <-submitted; err != nil {
		t.Errorf("submit to a node that is starting: %v", err)
	}
	if status, err := n.Status(ctx); err != nil || status.QueueDepth.Normal != 1 {
		t.Errorf("the queue has %+v, %v; want one job of normal priority", status.QueueDepth, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// TestWaitReturnsTheEndOfAJob: a wait ends with the job, or with its context. A wait for a job that does not exist is
// refused.
func TestWaitReturnsTheEndOfAJob(t *testing.T) {
	n, err := Open(t.Context(), testConfig(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	submitted, err := n.Submit(ctx, "x", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	type end struct {
		job lessor.Job
		err error
	}
	ends := make(chan end, 1)
	go func() {
		job, err := n.Wait(ctx, submitted.ID)
		ends <- end{job, err}
	}()
	cancelled, cancelWait := context.WithCancel(ctx)
	cancelWait()
	if job, err := n.Wait(cancelled, submitted.ID); err == nil {
		t.Errorf("a wait with a cancelled context returned %+v, want an error", job)
	}
	if _, err := n.Wait(ctx, lessor.JobID{}); lessor.CodeOf(err) != lessor.CodeJobNotFound {
		t.Errorf("a wait for a job that does not exist: %v, want job_not_found", err)
	}
	grants, _, err := n.Request(ctx, lessor.LeaseRequest{WorkerID: new("w")})
	if err != nil || len(grants) != 1 {
		t.Fatalf("request: %d grants, %v; want one", len(grants), err)
	}
	select {
	case e := <-ends:
		t.Errorf("the wait ended with %+v, %v while the job ran", e.job, e.err)
	default:
	}
	err = n.Complete(ctx, grants[0].Lease.ID, lessor.Completion{WorkerID: new("w"), Status: new("completed")})
	if err != nil {
		t.Fatal(err)
	}
	if e := <-ends; e.err != nil || e.job.State != lessor.Completed {
		t.Errorf("the wait returned %+v, %v; want the completed job", e.job, e.err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
