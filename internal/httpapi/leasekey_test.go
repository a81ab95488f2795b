package httpapi

import (
	"testing"

	"lessor"
)

// TestWhatEachRoleDoesWithALease takes a lease with a worker's token, and checks which roles list it, which may act for
// the worker, and how the record names them.
func TestWhatEachRoleDoesWithALease(t *testing.T) {
	s := start(t)
	taker := with(s.issue("worker", tenantA))
	decoded(t, s.call("POST", scheduling+"/jobs", `{"type":"x","tenant_id":"`+tenantA+`"}`, with(s.admin)))
	grant := decoded(t, s.call("POST", scheduling+"/leases/request", `{"worker_id":"scheduler"}`, taker))
	lease := grant["lease"].(map[string]any)["lease_id"].(string)
	job := grant["job"].(map[string]any)["job_id"].(string)
	const forged = `{"worker_id":"scheduler","status":"completed","result":{"forged":true}}`
	for _, c := range []struct {
		role, tenant string
		lists        int // leases, or -1: may not list
		status       int
		code         lessor.Code
	}{
		{"viewer", tenantA, 1, 403, lessor.CodeForbidden},
		{"viewer", "", 1, 403, lessor.CodeForbidden},
		{"viewer", tenantB, 0, 403, lessor.CodeForbidden},
		{"submitter", tenantA, -1, 403, lessor.CodeForbidden},
		{"operator", tenantA, 1, 403, lessor.CodeWorkerMismatch},
		{"operator", "", 1, 403, lessor.CodeWorkerMismatch},
		{"operator", tenantB, 0, 404, lessor.CodeLeaseNotFound},
		{"admin", "", 1, 403, lessor.CodeWorkerMismatch},
		{"worker", "", 0, 403, lessor.CodeWorkerMismatch},
		{"worker", tenantB, 0, 404, lessor.CodeLeaseNotFound},
	} {
		by := with(s.issue(c.role, c.tenant))
		if c.lists >= 0 {
			if list := decoded(t, s.call("GET", scheduling+"/leases", "", by)); len(list["leases"].([]any)) != c.lists {
				t.Errorf("%s of %q lists %v, want %d", c.role, c.tenant, list["leases"], c.lists)
			}
		}
		refused(t, s.call("POST", scheduling+"/leases/"+lease+"/heartbeat", `{"worker_id":"scheduler"}`, by), c.status,
			c.code)
		refused(t, s.call("POST", scheduling+"/leases/"+lease+"/complete", forged, by), c.status, c.code)
	}
	other := with(s.issue("worker", tenantA))
	if list := decoded(t, s.call("GET", scheduling+"/leases", "", other)); len(list["leases"].([]any)) != 0 {
		t.Errorf("another worker's token lists %v", list["leases"])
	}
	if got := decoded(t, s.call("GET", scheduling+"/jobs/"+job, "", other))["lease_id"]; got != nil {
		t.Errorf("another worker's token is shown the lease %v on the job", got)
	}
	if got := decoded(t, s.call("GET", scheduling+"/jobs/"+job, "", taker))["lease_id"]; got != lease {
		t.Errorf("the token that took the lease is shown %v on the job", got)
	}
	if w := s.call("POST", scheduling+"/leases/"+lease+"/complete", `{"worker_id":"scheduler","status":"completed"}`,
		taker); w.Code != 200 {
		t.Fatalf("its own completion: %d %s", w.Code, w.Body)
	}
	for _, e := range decoded(t, s.call("GET", scheduling+"/jobs/"+job+"/events", "",
		with(s.admin)))["events"].([]any) {
		if actor := e.(map[string]any)["actor"]; actor == "scheduler" {
			t.Errorf("a worker that is called so passes for the scheduler: %v", e)
		}
	}
}

// TestOperatorsEndWhatTheyTook: an operator's role includes the worker's.
func TestOperatorsEndWhatTheyTook(t *testing.T) {
	s := start(t)
	decoded(t, s.call("POST", scheduling+"/jobs", `{"type":"x"}`, with(s.admin)))
	operator := with(s.issue("operator", ""))
	grant := decoded(t, s.call("POST", scheduling+"/leases/request", `{"worker_id":"w"}`, operator))
	lease := grant["lease"].(map[string]any)["lease_id"].(string)
	if w := s.call("POST", scheduling+"/leases/"+lease+"/complete", `{"worker_id":"w","status":"completed"}`,
		operator); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
