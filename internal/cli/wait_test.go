//go:build linux

package cli

import (
	"testing"

	"lessor"
)

func TestSubmitShowsTheProgressOnATerminal(t *testing.T) {
	server, c := serve(t)
	s := onTerminal(t, server, "submit", "report", "--wait")
	grants, _, err := c.Request(t.Context(), lessor.LeaseRequest{WorkerID: new("w"), WaitMS: new(int64(10_000))})
	if err != nil {
		t.Fatal(err)
	}
	lease := grants[0].Lease.ID
	_, err = c.Heartbeat(t.Context(), lease, lessor.Heartbeat{
		WorkerID: new("w"), Progress: new(0.5), Message: new("half \x1b[31mway"),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.awaitText("█░░░░░░░░░░░░░░░ 50 % running half")
	if s.has("\x1b[31m") {
		t.Error("a message of the worker controls the terminal")
	}
	if err := c.Complete(t.Context(), lease, lessor.Completion{
		WorkerID: new("w"), Status: new("completed"), Result: []byte(`{"rows":42}`),
	}); err != nil {
		t.Fatal(err)
	}
	s.awaitText(`{"rows":42}`)
	s.ends(0)
}
