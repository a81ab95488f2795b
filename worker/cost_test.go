package worker

import (
	"testing"

	"lessor"
	"lessor/client"
)

func idle(t *testing.T) *Worker {
	t.Helper()
	c, err := client.New(client.Config{Server: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Config{Client: c})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestTraceAllocatesLittle bounds the cost of a trace that is not recorded, for each attempt.
func TestTraceAllocatesLittle(t *testing.T) {
	w := idle(t)
	grant := lessor.Grant{
		Job:   lessor.Job{Type: "x", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"},
		Lease: lessor.Lease{ID: lessor.LeaseID{UUID: lessor.UUID{1}}},
	}
	l := newLease(t.Context(), grant, &handler{}, moment{})
	if got := testing.AllocsPerRun(100, func() { w.trace(l) }); got > 12 {
		t.Errorf("%.0f allocations, want at most 12", got)
	}
}

// TestRushWakesTheFinishingLoopOnlyForItsOwn: during a rush, turns carry the completions.
func TestRushWakesTheFinishingLoopOnlyForItsOwn(t *testing.T) {
	w := idle(t)
	w.rush.on = true
	w.finishLocked(&lease{}, end{status: "completed"})
	if len(w.ending) != 0 {
		t.Error("a completion woke the finishing loop")
	}
	w.finishLocked(&lease{}, end{release: true})
	if len(w.ending) != 1 {
		t.Error("a release did not wake the finishing loop")
	}
}
