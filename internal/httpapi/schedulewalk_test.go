package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lessor"
)

// definition is the body of a definition that ticks once a year.
func definition(id, tenant string) string {
	return fmt.Sprintf(`{"jobId":%q,"tenantId":%q,"schedule":{"type":"cron","cron":"@yearly"},
		"handlerId":"posting.validate","lockKey":"posting",
		"circuit":{"failures":1}}`, id, tenant)
}

// fail triggers a definition, lets the first of its jobs fail, and returns that one's run.
func fail(s *server, id string) string {
	s.t.Helper()
	s.schedules("POST", "/jobs/"+id+"/trigger", "", 201)
	g := s.api("POST", "/leases/request", `{"worker_id":"w","types":["posting.validate"]}`, 200)
	if g["denied"] == true {
		s.t.Fatalf("no lease for %s: %v", id, g)
	}
	s.api("POST", "/leases/"+g["lease"].(map[string]any)["lease_id"].(string)+"/complete",
		`{"worker_id":"w","status":"failed","error":"no ledger"}`, 200)
	return g["job"].(map[string]any)["job_id"].(string)
}

func walkSchedules(s *server) {
	s.schedules("PUT", "/jobs/nightly", definition("nightly", tenantA), 201)
	s.schedules("PUT", "/jobs/nightly", definition("nightly", tenantA), 200)
	s.schedules("PUT", "/jobs/nightly", definition("nightly", tenantB), 409)
	s.schedules("PUT", "/jobs/nightly", definition("weekly", tenantA), 422)
	s.schedules("PUT", "/jobs/every",
		`{"jobId":"every","tenantId":"`+tenantA+`","schedule":{"type":"interval","seconds":86400},
			"handlerId":"sync","lockKey":"sync","backoff":{"firstMs":1,"maxMs":2}}`, 201)
	page := s.schedules("GET", "/jobs?limit=1&tenantId="+tenantA, "", 200)
	s.schedules("GET", "/jobs?limit=1&cursor="+page["nextCursor"].(string), "", 200)
	s.schedules("GET", "/jobs?tenantId=x", "", 422)
	s.schedules("GET", "/jobs/nightly", "", 200)
	for _, verb := range []string{"pause", "resume", "circuit/reset"} {
		s.schedules("POST", "/jobs/nightly/"+verb, "", 200)
		s.schedules("POST", "/jobs/none/"+verb, "", 404)
	}
	s.schedules("POST", "/jobs/none/trigger", "", 404)
	for _, change := range [][2]string{
		{"PUT", "/jobs/nightly"},
		{"DELETE", "/jobs/nightly"},
		{"POST", "/jobs/nightly/pause"},
		{"POST", "/jobs/nightly/resume"},
		{"POST", "/jobs/nightly/circuit/reset"},
		{"PUT", "/tenants/" + tenantA},
		{"PUT", "/tenants/" + tenantA + "/classes/batch"},
	} {
		body := "{}"
		if change[0] == "PUT" && strings.HasPrefix(change[1], "/jobs") {
			body = definition("nightly", tenantA)
		}
		w := s.call(change[0], schedules+change[1], body, with(s.admin), header("If-Match", `"other"`))
		refused(s.t, w, 412, lessor.CodePreconditionFailed)
	}
	s.schedules("GET", "/jobs/nightly/next?count=3", "", 200)
	s.schedules("GET", "/jobs/nightly/next?count=0", "", 422)
	last := time.Now().UTC().AddDate(-2, 0, 0).Format(time.RFC3339)
	s.schedules("POST", "/jobs/nightly/backfill",
		fmt.Sprintf(`{"from":%q,"to":%q}`, last, time.Now().UTC().Format(time.RFC3339)), 202)
	s.schedules("POST", "/jobs/nightly/backfill", `{"from":"then","to":"now"}`, 422)
	s.schedules("POST", "/jobs/none/backfill", bodies["/jobs/{jobId}/backfill"], 404)
	s.schedules("GET", "/jobs/nightly/ticks?limit=1", "", 200)
	s.schedules("GET", "/jobs/nightly/ticks?from=now", "", 422)
	for _, sub := range []string{"", "/next", "/ticks"} {
		s.schedules("GET", "/jobs/none"+sub, "", 404)
	}
	s.schedules("POST", "/manifests",
		`{"moduleId":"m","version":"1","tenantId":"`+tenantA+`","jobs":[`+definition("monthly",
			tenantA)+`],"dryRun":true}`, 200)
	s.schedules("POST", "/manifests",
		`{"moduleId":"m","version":"1","tenantId":"`+tenantA+`","jobs":[`+definition("nightly", tenantA)+`]}`, 409)
	s.schedules("POST", "/manifests", `{"moduleId":"","version":"1","tenantId":"`+tenantA+`","jobs":[]}`, 422)
	walkAudit(s)
	walkTenants(s)
	s.schedules("DELETE", "/jobs/nightly", "", 204)
	s.schedules("DELETE", "/jobs/nightly", "", 404)
}

func walkAudit(s *server) {
	run := fail(s, "nightly")
	shown := s.schedules("GET", "/runs/"+run, "", 200)
	s.schedules("GET", "/runs/"+nowhere, "", 404)
	s.schedules("GET", "/runs?jobId=nightly&status=RETRYING&limit=1", "", 200)
	s.schedules("GET", "/runs?status=DONE", "", 422)
	s.schedules("GET", "/errors/"+shown["lastErrorRef"].(string), "", 200)
	s.schedules("GET", "/errors/"+nowhere, "", 404)
	s.api("POST", "/jobs", `{"type":"locked","lock_key":"held"}`, 201)
	s.api("POST", "/leases/request", `{"worker_id":"w","types":["locked"]}`, 200)
	for path, name := range map[string]string{
		"/circuits": "circuits", "/locks": "locks", "/alerts?open=true": "alerts",
		"/audit": "audit",
	} {
		if got := s.schedules("GET", path, "", 200)[name].([]any); len(got) == 0 {
			s.t.Errorf("%s is empty", path)
		}
	}
	alert := s.schedules("GET", "/alerts?open=true", "", 200)["alerts"].([]any)[0].(map[string]any)["id"].(string)
	seen := s.schedules("POST", "/alerts/"+alert+"/acknowledge", "", 200)
	if seen["acknowledgedAt"] == nil || seen["acknowledgedBy"] == nil {
		s.t.Errorf("acknowledged: %v", seen)
	}
	s.schedules("POST", "/alerts/"+nowhere+"/acknowledge", "", 404)
	s.schedules("POST", "/alerts/nothing/acknowledge", "", 404)
	for _, path := range []string{"/circuits?limit=0", "/locks?tenantId=x", "/alerts?open=yes", "/audit?cursor=x"} {
		s.schedules("GET", path, "", 422)
	}
}

func walkTenants(s *server) {
	const tenant = "/tenants/" + tenantA
	s.schedules("GET", "/tenants", "", 200)
	s.schedules("GET", "/tenants?limit=0", "", 422)
	for _, path := range []string{"", "/classes/batch"} {
		s.schedules("PUT", tenant+path, `{"weight":3,"maxConcurrency":7}`, 200)
		s.schedules("PUT", tenant+path, `{"weight":0}`, 422)
		s.schedules("GET", tenant+path, "", 200)
		s.schedules("GET", "/tenants/acme"+path, "", 404)
		s.schedules("PUT", "/tenants/acme"+path, "{}", 404)
	}
	s.schedules("GET", tenant+"/classes/%ff", "", 422)
	s.schedules("GET", tenant+"/classes", "", 200)
	s.schedules("GET", tenant+"/classes?limit=0", "", 422)
	s.schedules("GET", "/tenants/acme/classes", "", 404)
	s.schedules("PUT", "/handlers/posting.validate", `{"schema":{"type":"object"}}`, 201)
	s.schedules("PUT", "/handlers/posting.validate", `{"schema":{"type":"object"}}`, 200)
	s.schedules("PUT", "/handlers/x", `{"schema":{}}`, 422)
	s.schedules("GET", "/handlers", "", 200)
	s.schedules("GET", "/handlers?limit=0", "", 422)
}

func TestScheduleListsArePaged(t *testing.T) {
	s := start(t)
	for i := range 3 {
		id := fmt.Sprintf("job-%d", i)
		s.schedules("PUT", "/jobs/"+id, definition(id, tenantA), 201)
		s.schedules("PUT", "/handlers/"+id, `{"schema":{}}`, 201)
		s.schedules("PUT", "/tenants/"+tenantA[:35]+fmt.Sprint(i), "{}", 200)
		s.schedules("PUT", "/tenants/"+tenantA+"/classes/"+id, "{}", 200)
		fail(s, id)
		s.api("POST", "/jobs", fmt.Sprintf(`{"type":"locked","lock_key":"lock-%d"}`, i), 201)
		s.api("POST", "/leases/request", `{"worker_id":"w","types":["locked"]}`, 200)
	}
	for path, name := range map[string]string{
		"/jobs": "jobs", "/handlers": "handlers", "/tenants": "tenants", "/tenants/" + tenantA + "/classes": "classes",
		"/runs":     "runs",
		"/circuits": "circuits", "/locks": "locks", "/alerts": "alerts", "/audit": "audit",
	} {
		whole := s.schedules("GET", path, "", 200)
		n, cursor := 0, ""
		for range 50 {
			list := s.schedules("GET", path+"?limit=1"+cursor, "", 200)
			n += len(list[name].([]any))
			if list["nextCursor"] == nil {
				break
			}
			cursor = "&cursor=" + list["nextCursor"].(string)
		}
		if n != len(whole[name].([]any)) || n < 3 || whole["nextCursor"] != nil {
			t.Errorf("%s: %d in pages, %d at once, then %v", path, n, len(whole[name].([]any)), whole["nextCursor"])
		}
	}
}

func TestScheduleListsAreFiltered(t *testing.T) {
	s := start(t)
	s.schedules("PUT", "/jobs/ann", definition("ann", tenantA), 201)
	s.schedules("PUT", "/jobs/bob", definition("bob", tenantB), 201)
	failed := fail(s, "ann")
	s.schedules("POST", "/jobs/ann/circuit/reset", "", 200)
	fail(s, "bob")
	for _, tenant := range []string{tenantA, tenantB} {
		s.api("POST", "/jobs", `{"type":"locked","lock_key":"held","tenant_id":"`+tenant+`"}`, 201)
		s.api("POST", "/leases/request", `{"worker_id":"w","types":["locked"]}`, 200)
	}
	for query, want := range map[string]int{
		"jobs?tenantId=" + tenantA: 1,
		"runs":                     4,
		"runs?jobId=ann":           1,
		"runs?jobId=" + failed:     0, // a definition's runs go by its id
		"runs?tenantId=" + tenantB: 2,
		"runs?status=CLAIMED":      2,
		"runs?traceId=" + strings.ReplaceAll(failed, "-", ""):           1,
		"runs?jobId=bob&traceId=" + strings.ReplaceAll(failed, "-", ""): 0,
		"locks":                       2,
		"locks?tenantId=" + tenantA:   1,
		"alerts":                      2,
		"alerts?open=false":           2,
		"alerts?open=true":            1,
		"audit?object=definition/ann": 2,
		"audit?actor=scheduler":       2,
		"audit?actor=scheduler&object=circuit/bob": 1,
	} {
		name, _, _ := strings.Cut(query, "?")
		if got := len(s.schedules("GET", "/"+query, "", 200)[name].([]any)); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}
