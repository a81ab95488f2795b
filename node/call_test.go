package node

import (
	"context"
	"testing"
)

// TestCallsWaitForAStartingNode follows the example in the package comment: nothing waits between Run and Submit.
func TestCallsWaitForAStartingNode(t *testing.T) {
	n, err := Open(t.Context(), quiet(t), nil)
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
		t.Errorf("status: %+v, %v, want one job of normal priority", status.QueueDepth, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
