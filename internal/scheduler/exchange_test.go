package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"lessor"
)

// TestWorkersOfOtherNodesAreKnown asks one node about a worker that calls another.
func TestWorkersOfOtherNodesAreKnown(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	ws[0].ask("worker-1", func(r *lessor.LeaseRequest) { r.Types = []string{"mail.send"} })
	for deadline := time.Now().Add(40 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		list, err := ws[1].Workers(ws[1].ctx, anybody)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 && list[0].WorkerID == "worker-1" && slices.Equal(list[0].Types, []string{"mail.send"}) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the other node knows of %+v", list)
		}
	}
	j := ws[1].submit(func(s *lessor.Submission) { s.Type = new("mail.send") })
	why, err := ws[1].Why(ws[1].ctx, anybody, j.ID)
	if err != nil || slices.ContainsFunc(why.Reasons, func(r lessor.Reason) bool { return r.Code == "no_worker" }) {
		t.Errorf("why: %+v, %v", why, err)
	}
}
