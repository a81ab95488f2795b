package httpapi

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"lessor"
)

// TestDefinitionIsEditedAndSentBack: what GET answers is a valid PUT, which changes what was edited; If-Match refuses it
// if somebody else was faster.
func TestDefinitionIsEditedAndSentBack(t *testing.T) {
	s := start(t)
	ask := func(method, body, etag string) *httptest.ResponseRecorder {
		t.Helper()
		if etag == "" {
			return s.call(method, schedules+"/jobs/nightly", body, with(s.admin))
		}
		return s.call(method, schedules+"/jobs/nightly", body, with(s.admin), header("If-Match", etag))
	}
	refused(t, ask("PUT", definition("nightly", tenantA), "*"), 412, lessor.CodePreconditionFailed)
	created := ask("PUT", definition("nightly", tenantA), "")
	got := ask("GET", "", "")
	etag := got.Header().Get("ETag")
	if len(etag) < 10 || etag[0] != '"' || etag != created.Header().Get("ETag") {
		t.Fatalf("ETag is %s, and was %s when it was stored", etag, created.Header().Get("ETag"))
	}
	back := ask("PUT", got.Body.String(), etag)
	if back.Code != 200 || back.Body.String() != got.Body.String() || back.Header().Get("ETag") != etag {
		t.Fatalf("sent back: %d %s\nwant %s", back.Code, back.Body, got.Body)
	}
	edited := strings.Replace(got.Body.String(), `"maxAttempts":5`, `"maxAttempts":7`, 1)
	edited = strings.Replace(edited, `"paused":false`, `"paused":true`, 1)
	changed := ask("PUT", edited, etag)
	if d := decoded(t, changed); d["maxAttempts"] != json.Number("7") || d["paused"] != true || d["nextTickAt"] != nil {
		t.Errorf("edited: %v", d)
	}
	if changed.Header().Get("ETag") == etag {
		t.Error("another version has the same ETag")
	}
	for _, method := range []string{"PUT", "DELETE"} {
		refused(t, ask(method, edited, etag), 412, lessor.CodePreconditionFailed)
	}
	if left := ask("GET", "", ""); left.Header().Get("ETag") != changed.Header().Get("ETag") {
		t.Error("a refused change changed something")
	}
	if w := ask("DELETE", "", changed.Header().Get("ETag")); w.Code != 204 {
		t.Errorf("delete: %d %s", w.Code, w.Body)
	}
}

func TestTenantKeepsItsVersionWhileJobsCome(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/tenants/" + tenantA, "/tenants/" + tenantA + "/classes/default"} {
		etag := func() string {
			return s.call("GET", schedules+path, "", with(s.admin)).Header().Get("ETag")
		}
		put := func(body, match string) *httptest.ResponseRecorder {
			return s.call("PUT", schedules+path, body, with(s.admin), header("If-Match", match))
		}
		first := etag()
		s.api("POST", "/jobs", `{"type":"mail","tenant_id":"`+tenantA+`"}`, 201)
		if first == "" || etag() != first {
			t.Errorf("%s: a job changed the ETag from %s to %s", path, first, etag())
		}
		w := put(`{"weight":3}`, first)
		if w.Code != 200 || w.Header().Get("ETag") == first {
			t.Errorf("%s: %d, ETag %s", path, w.Code, w.Header().Get("ETag"))
		}
		refused(t, put(`{"weight":4}`, first), 412, lessor.CodePreconditionFailed)
		refused(t, put(`{"weight":4}`, ""), 412, lessor.CodePreconditionFailed)
		if etag() != w.Header().Get("ETag") {
			t.Errorf("%s: a refused change changed something", path)
		}
	}
}

func TestTriggerTakesAPayload(t *testing.T) {
	s := start(t)
	s.schedules("PUT", "/jobs/nightly",
		strings.Replace(definition("nightly", tenantA), `"lockKey"`, `"payload":{"day":"today"},"lockKey"`, 1), 201)
	s.schedules("PUT", "/handlers/posting.validate",
		`{"schema":{"type":"object","properties":{"day":{"type":"string"}}}}`, 201)
	for body, want := range map[string]string{
		"": `{"day":"today"}`, `{"payload":null}`: `{"day":"today"}`, `{"payload":{}}`: `{}`,
		`{"payload":{"day":"monday"}}`: `{"day":"monday"}`,
	} {
		run := s.schedules("POST", "/jobs/nightly/trigger", body, 201)["runId"].(string)
		got, _ := json.Marshal(s.api("GET", "/jobs/"+run, "", 200)["payload"])
		if string(got) != want {
			t.Errorf("%s made a job with payload %s, want %s", body, got, want)
		}
		if got := s.schedules("GET", "/runs?status=QUEUED&limit=1", "", 200)["runs"].([]any); len(got) != 1 ||
			got[0].(map[string]any)["runId"] != run {
			t.Errorf("the newest queued run is %v", got)
		}
	}
	s.schedules("POST", "/jobs/nightly/trigger", `{"payload":{"day":1}}`, 422)
}
