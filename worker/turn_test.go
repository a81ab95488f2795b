package worker_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lessor"
	"lessor/lessortest"
)

// TestWorkViewShowsTheSameGrant requests a job with the view "work", and repeats the request with the full view.
func TestWorkViewShowsTheSameGrant(t *testing.T) { synctest.Test(t, sameGrant) }

func sameGrant(t *testing.T) {
	s := lessortest.Start(t)
	for _, sub := range []lessor.Submission{
		{Type: new("plain")},
		{
			Type: new("rich"), Payload: []byte(`{"a":[1]}`), Priority: new("low"), RequestedUnits: new(int64(2)),
			Unique: new(true), IdempotencyKey: new("k"), Tags: []string{"x", "y"}, MaxRuntimeS: new(int64(60)),
			TenantID: new("018f0000-0000-7000-8000-00000000000a"), FairnessClass: new("gold"), LockKey: new("lock"),
		},
	} {
		if _, err := s.Client().SubmitJob(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
		r := lessor.LeaseRequest{
			WorkerID: new("w-" + *sub.Type), Types: []string{*sub.Type}, RequestID: new("r"), View: new(lessor.ViewWork),
		}
		short, denial, err := s.Client().Request(t.Context(), r)
		if err != nil || denial != nil {
			t.Fatalf("request: %v, %v", denial, err)
		}
		r.View = nil
		full, _, err := s.Client().Request(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		rest := cmpopts.IgnoreFields(lessor.Lease{}, "TTLMS", "HeartbeatAfterMS") // what is left of the time
		if diff := cmp.Diff(full, short, rest); diff != "" {
			t.Errorf("the view \"work\" of %s differs (-full +work):\n%s", *sub.Type, diff)
		}
	}
}
