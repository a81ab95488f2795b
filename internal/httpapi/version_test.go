package httpapi

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"lessor"
)

// TestDefinitionIsEditedAndSentBack: what GET answers is a valid PUT, which changes what was edited; If-Match refuses
// it if somebody else was faster.
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

// TestTenantIsEditedAndSentBack: the body of a GET of a tenant or a class is a valid PUT and changes only
// what was edited.
func TestTenantIsEditedAndSentBack(t *testing.T) {
	s := start(t)
	s.api("POST", "/jobs", `{"type":"mail","tenant_id":"`+tenantA+`"}`, 201)
	for _, path := range []string{"/tenants/" + tenantA, "/tenants/" + tenantA + "/classes/default"} {
		ask := func(method, body, etag string) *httptest.ResponseRecorder {
			return s.call(method, schedules+path, body, with(s.admin), header("If-Match", etag))
		}
		got := ask("GET", "", "*")
		etag := got.Header().Get("ETag")
		back := ask("PUT", got.Body.String(), etag)
		if back.Code != 200 || back.Body.String() != got.Body.String() || back.Header().Get("ETag") != etag {
			t.Fatalf("%s sent back: %d %s\nwant %s", path, back.Code, back.Body, got.Body)
		}
		edited := strings.Replace(got.Body.String(), `"weight":1`, `"weight":3`, 1)
		changed := ask("PUT", edited, etag)
		if d := decoded(t, changed); d["maxConcurrencyDefault"] == false ||
			d["weight"] != json.Number("3") || d["queued"] != json.Number("1") {
			t.Errorf("%s edited: %v", path, d)
		}
		refused(t, ask("PUT", edited, etag), 412, lessor.CodePreconditionFailed)
		s.names("PUT", schedules+path, `{"tenantId":"`+tenantB+`","class":"other"}`, 422, "tenantId", "class")
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

// TestEachFieldOfADefinitionIsEdited reads a definition, changes one field, sends it back, and reads the change.
func TestEachFieldOfADefinitionIsEdited(t *testing.T) {
	s := start(t)
	s.schedules("PUT", "/jobs/nightly", definition("nightly", tenantA), 201)
	s.schedules("PUT", "/jobs/timed", strings.Replace(definition("timed", tenantA), "{", `{"timeoutSeconds":60,`, 1),
		201)
	fields := map[string]any{
		"schedule": map[string]any{"type": "interval", "seconds": 7}, "handlerId": "other.handler", "lockKey": "other",
		"maxAttempts": 7, "maxRuntimeSeconds": 7200, "fairnessClass": "batch", "isEnabled": false,
		"payload": map[string]any{"a": "b"}, "priority": "low", "requestedUnits": 3, "timezone": "Europe/Berlin",
		"overlap": "allow", "catchUp": "none", "catchUpWindowSeconds": 60, "jitterSeconds": 5, "paused": true,
		"circuit": map[string]any{"failures": 2, "cooldownSeconds": 9}, "timeoutSeconds": 90,
		"backoff": map[string]any{"firstMs": 1, "maxMs": 2},
	}
	fixed := []string{"jobId", "tenantId", "moduleId", "version", "nextTickAt", "createdAt", "updatedAt"}
	for field := range s.schedules("GET", "/jobs/nightly", "", 200) {
		path := "/jobs/nightly"
		if field == "timeoutSeconds" { // it takes precedence where it is set
			path = "/jobs/timed"
		}
		value, ok := fields[field]
		if !ok && !slices.Contains(fixed, field) {
			t.Errorf("no value is tried for %s", field)
		}
		if !ok {
			continue
		}
		d := s.schedules("GET", path, "", 200)
		d[field] = value
		body, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		s.schedules("PUT", path, string(body), 200)
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(s.schedules("GET", path, "", 200)[field])
		if err != nil || string(got) != string(want) {
			t.Errorf("%s was set to %s, and is %s (%v)", field, want, got, err)
		}
	}
	if d := s.schedules("GET", "/jobs/timed", "", 200); d["maxRuntimeSeconds"] != json.Number("90") {
		t.Errorf("timeoutSeconds is 90, and maxRuntimeSeconds %v", d["maxRuntimeSeconds"])
	}
}

func TestIfNoneMatchSavesTheAnswer(t *testing.T) {
	s := start(t)
	s.schedules("PUT", "/jobs/nightly", definition("nightly", tenantA), 201)
	for _, path := range []string{"/jobs/nightly", "/tenants/" + tenantA, "/tenants/" + tenantA + "/classes/default"} {
		etag := s.call("GET", schedules+path, "", with(s.admin)).Header().Get("ETag")
		for known, want := range map[string]int{etag: 304, `"x", W/` + etag: 304, "*": 304, `"x"`: 200} {
			w := s.call("GET", schedules+path, "", with(s.admin), header("If-None-Match", known))
			if w.Code != want || w.Header().Get("ETag") != etag || want == 304 && w.Body.Len() > 0 {
				t.Errorf("%s with If-None-Match %s: %d %s, want %d", path, known, w.Code, w.Body, want)
			}
		}
	}
}

// TestChangeThatOnlyCreatesReplacesNothing: If-None-Match holds for changes too.
func TestChangeThatOnlyCreatesReplacesNothing(t *testing.T) {
	s := start(t)
	put := func(path, body, spared string) int {
		return s.call("PUT", schedules+path, body, with(s.admin), header("If-None-Match", spared)).Code
	}
	first := definition("nightly", tenantA)
	if got := put("/jobs/nightly", first, "*"); got != 201 {
		t.Errorf("creating a definition: %d", got)
	}
	other := strings.Replace(first, "{", `{"maxAttempts":9,`, 1)
	w := s.call("GET", schedules+"/jobs/nightly", "", with(s.admin))
	for _, spared := range []string{"*", w.Header().Get("ETag")} {
		if got := put("/jobs/nightly", other, spared); got != 412 {
			t.Errorf("replacing a definition with If-None-Match %s: %d, want 412", spared, got)
		}
	}
	if now := s.call("GET", schedules+"/jobs/nightly", "", with(s.admin)); now.Body.String() != w.Body.String() {
		t.Errorf("the definition is now %s", now.Body)
	}
	if got := put("/jobs/nightly", other, `"another"`); got != 200 {
		t.Errorf("replacing another version: %d", got)
	}
	if got := put("/tenants/"+tenantA, `{"weight":2}`, "*"); got != 412 {
		t.Errorf("creating a tenant, which is always there: %d, want 412", got)
	}
}

func TestTenantHasAName(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/tenants/" + tenantA, "/tenants/" + tenantA + "/classes/batch"} {
		name := func(body string) any { return s.schedules("PUT", path, body, 200)["name"] }
		if got := name(`{"weight":2}`); got != nil {
			t.Errorf("%s has the name %v before it was given one", path, got)
		}
		if got := name(`{"name":"Acme, Inc."}`); got != "Acme, Inc." {
			t.Errorf("%s has the name %v", path, got)
		}
		if got := name(`{"weight":3}`); got != "Acme, Inc." || s.schedules("GET", path, "", 200)["name"] != got {
			t.Errorf("%s has the name %v after another change", path, got)
		}
	}
	list := s.schedules("GET", "/tenants", "", 200)["tenants"].([]any)
	if got := list[0].(map[string]any)["name"]; got != "Acme, Inc." {
		t.Errorf("the list shows the name %v", got)
	}
	s.names("PUT", schedules+"/tenants/"+tenantA, `{"name":"","weight":0}`, 422, "name", "weight")
	if got := s.schedules("PUT", "/tenants/"+tenantA, `{"name":null}`, 200)["name"]; got != nil {
		t.Errorf("after null the name is %v", got)
	}
}
