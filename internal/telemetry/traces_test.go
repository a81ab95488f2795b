package telemetry

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
)

func TestFailuresOfTheCollectorAreReportedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := 0
		tr, err := NewTraces(TracesConfig{Endpoint: "http://127.0.0.1:1", Failed: func(error) { reports++ }})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			tr.fail(errors.New("away"))
			time.Sleep(time.Second)
		}
		if reports != 2 {
			t.Errorf("%d reports in 100 s, want 2", reports)
		}
	})
}

func TestWithoutAnEndpointThereAreNoTraces(t *testing.T) {
	tr, err := NewTraces(TracesConfig{})
	if tr != nil || err != nil {
		t.Fatalf("traces %v, %v; want neither traces nor an error", tr, err)
	}
	allocs := testing.AllocsPerRun(100, func() {
		tr.Submitted(t.Context(), &lessor.Job{})
		tr.Granted(nil)
		tr.Ended(t.Context(), lessor.LeaseID{}, "completed")
	})
	if allocs > 1 { // one is the job above
		t.Errorf("%v allocations for spans that are not sent, want none but the job", allocs)
	}
	tr.Run(t.Context())
}

// TestLeaseTracesAreBounded ends none of the leases.
func TestLeaseTracesAreBounded(t *testing.T) {
	var m leaseTraces
	id := func(n int) lessor.LeaseID {
		return lessor.LeaseID{UUID: lessor.UUID{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}}
	}
	for n := range 5 * generation {
		if !m.put(id(n), leaseTrace{}) {
			t.Fatalf("put of new lease %d returned false, want true", n)
		}
	}
	if n := len(m.young) + len(m.old); n > 2*generation {
		t.Errorf("%d leases are remembered, want at most %d", n, 2*generation)
	}
	last := id(5*generation - 1)
	if m.put(last, leaseTrace{}) {
		t.Error("a second put of the last lease returned true, want false")
	}
	if _, ok := m.take(last); !ok {
		t.Error("the last lease was not found, want it kept")
	}
	if _, ok := m.take(last); ok {
		t.Error("the last lease was found after it was taken, want it gone")
	}
}
