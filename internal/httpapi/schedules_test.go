package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

func TestDefinitionShowsTheDefaults(t *testing.T) {
	s := start(t)
	const id = "posting.nightly/eu"
	body := `{"jobId":"` + id + `","tenantId":"` + tenantA +
		`","schedule":{"type":"cron","cron":"0 2 * * *"},"handlerId":"posting.validate","lockKey":"posting"}`
	got := s.schedules("PUT", "/jobs/posting.nightly%2Feu", body, 201)
	for _, at := range []string{"nextTickAt", "createdAt", "updatedAt"} {
		if got[at] == nil {
			t.Errorf("%s is null", at)
		}
		delete(got, at)
	}
	want := map[string]any{
		"jobId": id, "tenantId": tenantA, "schedule": map[string]any{"type": "cron", "cron": "0 2 * * *"},
		"handlerId": "posting.validate",
		"lockKey":   "posting", "maxAttempts": json.Number("5"), "timeoutSeconds": json.Number("300"),
		"maxRuntimeSeconds": json.Number("300"),
		"fairnessClass":     "default", "isEnabled": true,
		"payload": map[string]any{}, "priority": "normal", "requestedUnits": json.Number("1"), "timezone": "UTC",
		"overlap": "skip",
		"catchUp": "latest", "catchUpWindowSeconds": json.Number("3600"), "jitterSeconds": json.Number("0"),
		"circuit": map[string]any{"failures": json.Number("5"), "cooldownSeconds": json.Number("300")},
		"backoff": map[string]any{"firstMs": json.Number("1000"), "maxMs": json.Number("300000")}, "moduleId": nil,
		"version": nil, "paused": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if paused := s.schedules("POST", "/jobs/posting.nightly%2Feu/pause", "", 200); paused["paused"] != true ||
		paused["isEnabled"] != true {
		t.Errorf("paused: %v", paused)
	}
}

func TestManifestReportsWhatItDoes(t *testing.T) {
	s := start(t)
	apply := func(more string, ids ...string) string {
		t.Helper()
		var jobs []string
		for _, id := range ids {
			// the manifest says it
			jobs = append(jobs, strings.Replace(definition(id, tenantA), `"tenantId":"`+tenantA+`",`, "", 1))
		}
		got := s.schedules("POST", "/manifests",
			`{"moduleId":"books","version":"7","tenantId":"`+tenantA+`","jobs":[`+strings.Join(jobs,
				",")+`]`+more+`}`, 200)
		return fmt.Sprint(got["created"], got["changed"], got["unchanged"], got["removed"], got["dryRun"])
	}
	for _, tt := range []struct {
		more string
		ids  []string
		want string
	}{
		{`,"dryRun":true`, []string{"nightly", "monthly"}, "[nightly monthly] [] [] [] true"},
		{"", []string{"nightly", "monthly"}, "[nightly monthly] [] [] [] false"},
		{"", []string{"nightly", "monthly"}, "[] [] [nightly monthly] [] false"},
		{"", []string{"nightly"}, "[] [] [nightly] [] false"},
		{`,"prune":true`, []string{"nightly"}, "[] [] [nightly] [monthly] false"},
	} {
		if got := apply(tt.more, tt.ids...); got != tt.want {
			t.Errorf("%v%s: %s, want %s", tt.ids, tt.more, got, tt.want)
		}
	}
	if got := s.schedules("GET", "/jobs?moduleId=books", "", 200)["jobs"].([]any); len(got) != 1 {
		t.Errorf("the module has %d definitions, want 1", len(got))
	}
	if got := s.schedules("GET", "/jobs?moduleId=other", "", 200)["jobs"].([]any); len(got) != 0 {
		t.Errorf("another module has %d definitions", len(got))
	}
}

func TestTriggerContinuesTheCallersTrace(t *testing.T) {
	s := start(t)
	s.schedules("PUT", "/jobs/nightly", definition("nightly", tenantA), 201)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	w := s.call("POST", schedules+"/jobs/nightly/trigger", "", with(s.admin),
		header("Traceparent", "00-"+trace+"-b7ad6b7169203331-01"))
	run := decoded(t, w)["runId"].(string)
	if got := s.api("GET", "/jobs/"+run, "", 200)["trace_id"]; got != trace {
		t.Errorf("the job's trace is %v", got)
	}
	s.api("POST", "/leases/request", `{"worker_id":"w"}`, 200)
	runs := s.schedules("GET", "/runs?traceId="+trace, "", 200)["runs"].([]any)
	if len(runs) != 1 || runs[0].(map[string]any)["runId"] != run || runs[0].(map[string]any)["status"] != "CLAIMED" {
		t.Errorf("runs of the trace: %v", runs)
	}
	if !strings.HasPrefix(w.Header().Get("Traceparent"), "00-"+trace+"-") {
		t.Errorf("the answer continues %q", w.Header().Get("Traceparent"))
	}
}

// 002's optional fields are left out until they exist; all others are there.
func TestRunLeavesOutWhatDoesNotExistYet(t *testing.T) {
	s := start(t)
	s.schedules("PUT", "/jobs/nightly", definition("nightly", tenantA), 201)
	run := s.schedules("POST", "/jobs/nightly/trigger", "", 201)["runId"].(string)
	if queued := s.schedules("GET", "/runs/"+run, "", 200); queued["status"] != "QUEUED" ||
		queued["startedAt"] != nil || queued["attempts"] != json.Number("0") {
		t.Errorf("triggered: %v", queued)
	}
	g := s.api("POST", "/leases/request", `{"worker_id":"w"}`, 200)
	has := func(field string) bool {
		_, ok := s.schedules("GET", "/runs/"+run, "", 200)[field]
		return ok
	}
	if has("endedAt") || has("lastErrorRef") || !has("traceId") || !has("attempts") {
		t.Errorf("claimed: %v", s.schedules("GET", "/runs/"+run, "", 200))
	}
	s.api("POST", "/leases/"+g["lease"].(map[string]any)["lease_id"].(string)+"/complete",
		`{"worker_id":"w","status":"failed","error":"no ledger","retryable":false}`, 200)
	if !has("endedAt") || !has("lastErrorRef") {
		t.Errorf("failed: %v", s.schedules("GET", "/runs/"+run, "", 200))
	}
	ref := s.schedules("GET", "/runs/"+run, "", 200)["lastErrorRef"].(string)
	if e := s.schedules("GET", "/errors/"+ref, "", 200); e["message"] != "no ledger" || e["runId"] != run ||
		fmt.Sprint(e["attempt"]) != "1" {
		t.Errorf("error: %v", e)
	}
}

// Tenant B's token reads and changes nothing of tenant A's, and learns of it only that an id is taken.
func TestSchedulesKeepTenantsApart(t *testing.T) {
	s := start(t)
	a, b := with(s.issue("operator", tenantA)), with(s.issue("operator", tenantB))
	// leaving one's own tenant out is fine
	mine := strings.Replace(definition("nightly", tenantA), `"tenantId":"`+tenantA+`",`, "", 1)
	if w := s.call("PUT", schedules+"/jobs/nightly", mine, a); w.Code != 201 || decoded(t, w)["tenantId"] != tenantA {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	run := fail(s, "nightly")
	ref := s.schedules("GET", "/runs/"+run, "", 200)["lastErrorRef"].(string)
	s.api("POST", "/jobs", `{"type":"locked","lock_key":"held","tenant_id":"`+tenantA+`"}`, 201)
	s.api("POST", "/leases/request", `{"worker_id":"w","types":["locked"]}`, 200)
	for _, path := range []string{"/jobs/nightly", "/jobs/nightly/next", "/jobs/nightly/ticks"} {
		refused(t, s.call("GET", schedules+path, "", b), 404, lessor.CodeDefinitionNotFound)
	}
	for _, verb := range []string{"pause", "resume", "circuit/reset", "trigger"} {
		refused(t, s.call("POST", schedules+"/jobs/nightly/"+verb, "", b), 404, lessor.CodeDefinitionNotFound)
	}
	refused(t, s.call("POST", schedules+"/jobs/nightly/backfill", bodies["/jobs/{jobId}/backfill"], b), 404,
		lessor.CodeDefinitionNotFound)
	refused(t, s.call("DELETE", schedules+"/jobs/nightly", "", b), 404, lessor.CodeDefinitionNotFound)
	refused(t, s.call("GET", schedules+"/runs/"+run, "", b), 404, lessor.CodeRunNotFound)
	refused(t, s.call("GET", schedules+"/errors/"+ref, "", b), 404, lessor.CodeErrorNotFound)
	for _, alert := range s.schedules("GET", "/alerts", "", 200)["alerts"].([]any) {
		path := schedules + "/alerts/" + alert.(map[string]any)["id"].(string) + "/acknowledge"
		refused(t, s.call("POST", path, "", b), 404, lessor.CodeAlertNotFound)
		refused(t, s.call("POST", path, "", with(s.issue("viewer", tenantA))), 403, lessor.CodeForbidden)
		if w := s.call("POST", path, "", a); w.Code != 200 {
			t.Errorf("acknowledged by its own tenant's operator: %d %s", w.Code, w.Body)
		}
	}
	refused(t, s.call("PUT", schedules+"/jobs/nightly", definition("nightly", tenantB), b), 409, lessor.CodeConflict)
	refused(t, s.call("PUT", schedules+"/jobs/weekly", definition("weekly", tenantA), b), 403, lessor.CodeForbidden)
	refused(t, s.call("POST", schedules+"/manifests", `{"moduleId":"m","tenantId":"`+tenantA+`","jobs":[]}`, b), 403,
		lessor.CodeForbidden)
	for _, path := range []string{"/jobs", "/runs", "/locks"} {
		refused(t, s.call("GET", schedules+path+"?tenantId="+tenantA, "", b), 403, lessor.CodeForbidden)
	}
	for _, path := range []string{"", "/classes", "/classes/default"} {
		refused(t, s.call("GET", schedules+"/tenants/"+tenantA+path, "", b), 403, lessor.CodeForbidden)
	}
	refused(t, s.call("PUT", schedules+"/tenants/"+tenantA, `{"paused":true}`, b), 403, lessor.CodeForbidden)
	refused(t, s.call("PUT", schedules+"/tenants/"+tenantA+"/classes/default", `{}`, b), 403, lessor.CodeForbidden)
	// nor its own share
	refused(t, s.call("PUT", schedules+"/tenants/"+tenantA, `{"weight":9}`, a), 403, lessor.CodeForbidden)
	refused(t, s.call("PUT", schedules+"/tenants/"+tenantA+"/classes/default", `{"weight":9}`, a), 403,
		lessor.CodeForbidden)
	for _, path := range []string{"/jobs", "/runs", "/locks", "/circuits", "/alerts", "/tenants"} {
		if w := s.call("GET", schedules+path, "", b); w.Code != 200 || strings.Contains(w.Body.String(), tenantA) ||
			strings.Contains(w.Body.String(), "nightly") {
			t.Errorf("%s shows tenant B: %d %s", path, w.Code, w.Body)
		}
		if w := s.call("GET", schedules+path, "", a); !strings.Contains(w.Body.String(), tenantA) &&
			!strings.Contains(w.Body.String(), "nightly") {
			t.Errorf("%s hides from tenant A what is its own: %s", path, w.Body)
		}
	}
}

// Not every store can look up such an id, so the API asks none: the server of this test has no store.
func TestIDsThatAreNoTextReachNoStore(t *testing.T) {
	s := start(t)
	broken := *s
	broken.API = New(Config{Tokens: s.tokens, Telemetry: s.telemetry, ListenAddr: testListen})
	for _, id := range []string{"nightly%00", "%ff%fe"} {
		refused(t, broken.call("GET", schedules+"/jobs/"+id, "", with(s.admin)), 404, lessor.CodeDefinitionNotFound)
		refused(t, broken.call("DELETE", schedules+"/jobs/"+id, "", with(s.admin)), 404, lessor.CodeDefinitionNotFound)
	}
	refused(t, broken.call("GET", schedules+"/runs/x", "", with(s.admin)), 404, lessor.CodeRunNotFound)
	refused(t, broken.call("GET", schedules+"/tenants/x", "", with(s.admin)), 404, lessor.CodeTenantNotFound)
}

func TestAuditNamesTheActor(t *testing.T) {
	s := start(t)
	ann := decoded(t, s.call("POST", administration+"/tokens", `{"role":"operator","name":"ann"}`,
		with(s.admin)))["token"].(string)
	if w := s.call("PUT", schedules+"/jobs/nightly", definition("nightly", tenantA), with(ann)); w.Code != 201 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	s.call("DELETE", schedules+"/jobs/nightly", "")
	var got []string
	for _, e := range s.schedules("GET", "/audit?object=definition/nightly", "", 200)["audit"].([]any) {
		e := e.(map[string]any)
		got = append(got, fmt.Sprint(e["actor"], " ", e["action"], " ", e["before"] != nil, e["after"] != nil))
	}
	if diff := cmp.Diff([]string{"local definition.deleted true false", "ann definition.created false true"},
		got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
