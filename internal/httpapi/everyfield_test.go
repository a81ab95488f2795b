package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// badQuery has a value for each query parameter that can be wrong, besides those that no parameter may have.
var badQuery = map[string]string{
	"state": "FOO", "type": strings.Repeat("x", 121), "tag": strings.Repeat("x", 81), "tenant_id": "acme",
	"wait_ms": "-1", "attempt": "-1", "fence": "-1", "stream": "stdin", "offset": "x", "limit": "0", "after": "-1",
	"cursor": "!", "jobId": "x", "tenantId": "acme", "count": "101", "from": "x", "to": "y", "status": "FOO",
	"traceId": "short", "open": "maybe", "seconds": "61",
}

// TestRefusalNamesEveryQueryParameter sends wrong values of all parameters of a route at once, and of each two.
func TestRefusalNamesEveryQueryParameter(t *testing.T) {
	s := start(t)
	job := s.api("POST", "/jobs", `{"type":"x"}`, 201)["job_id"].(string)
	s.schedules("PUT", "/jobs/nightly", definition("nightly", tenantA), 201)
	ids := strings.NewReplacer("{job_id}", job, "{jobId}", "nightly", "{tenantId}", tenantA, "{profile}", "heap")
	several := 0
	for _, rt := range routes(defaultPayloadLimit) {
		path := ids.Replace(rt.path)
		for i, first := range rt.query {
			for _, second := range rt.query[i+1:] {
				s.namesAll(rt.method, path, "", map[string]string{first: wrongValue(first), second: wrongValue(second)},
					422)
				several++
			}
		}
		if len(rt.query) > 0 {
			all := map[string]string{"nope": "1", "nada": "2"}
			for _, name := range rt.query {
				all[name] = wrongValue(name)
			}
			s.namesAll(rt.method, path, "", all, 400)
		}
	}
	if several < 50 {
		t.Errorf("only %d pairs were sent", several)
	}
}

// wrongValue returns a wrong value of a parameter: the empty text for one that takes any text.
func wrongValue(parameter string) string { return badQuery[parameter] }

// namesAll sends a request, and expects its refusal to name each of the wrong fields once.
func (s *server) namesAll(method, path, body string, query map[string]string, status int) {
	s.t.Helper()
	var q, want []string
	for name, value := range query {
		q = append(q, name+"="+value)
		want = append(want, name)
	}
	if len(q) > 0 {
		path += "?" + strings.Join(q, "&")
	}
	s.names(method, path, body, status, want...)
}

func (s *server) names(method, path, body string, status int, want ...string) {
	s.t.Helper()
	w := s.call(method, path, body, with(s.admin))
	var got []string
	errs, _ := decoded(s.t, w)["errors"].([]any)
	for _, e := range errs {
		got = append(got, e.(map[string]any)["field"].(string))
	}
	slices.Sort(got)
	slices.Sort(want)
	if w.Code != status || !slices.Equal(got, want) {
		s.t.Errorf("%s %s %s: %d %v, want %d %v: %s", method, path, body, w.Code, got, status, want, w.Body)
	}
}

// TestRefusalNamesEveryFieldOfABody sends a field that does not exist, one of the wrong type and one with a wrong value
// to each route whose body has such fields.
func TestRefusalNamesEveryFieldOfABody(t *testing.T) {
	s := start(t)
	table, mixed := routes(defaultPayloadLimit), 0
	mux := newMux(table)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		to := requests[name]
		_, pattern := mux.Handler(request(to.method, to.path, ""))
		i := slices.IndexFunc(table, func(rt route) bool { return rt.method == to.method && rt.path == pattern })
		var fields, want []string
		for _, f := range fieldsOf(table[i].handle.in) {
			described := bounds[name+"."+f.name]
			switch _, given := to.base[f.name]; {
			case given:
			case described["minimum"] != nil && f.typ.Kind() != reflect.Slice:
				fields, want = append(fields, fmt.Sprintf(`%q:-1`, f.name)), append(want, f.name)
			case described["enum"] != nil || described["format"] != nil:
				fields, want = append(fields, fmt.Sprintf(`%q:"no such"`, f.name)), append(want, f.name)
			case f.typ == reflect.TypeFor[*bool]():
				fields, want = append(fields, fmt.Sprintf(`%q:"yes"`, f.name)), append(want, f.name)
			}
		}
		if len(want) == 0 {
			continue
		}
		mixed++
		for field, value := range to.base {
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			fields = append(fields, fmt.Sprintf(`%q:%s`, field, text))
		}
		s.names(to.method, to.path, "{"+strings.Join(append(fields, `"nope":1`), ",")+"}", 400, append(want, "nope")...)
	}
	if mixed < 8 {
		t.Errorf("only %d bodies were sent", mixed)
	}
}

// TestRefusalNamesFieldsOfEveryCheck has bodies whose mistakes are found in different places: the decoder, the rules,
// the configuration, the path.
func TestRefusalNamesFieldsOfEveryCheck(t *testing.T) {
	s := start(t)
	s.names("PUT", scheduling+"/capacity", `{"busy":"x","total_units":5,"expires_in_s":0}`, 400,
		"busy", "total_units", "expires_in_s")
	s.names("PUT", schedules+"/tenants/"+tenantA, `{"weight":0,"paused":"no","maxConcurrency":0,"nope":1}`, 400,
		"weight", "paused", "maxConcurrency", "nope")
	s.names("POST", scheduling+"/jobs", `{"type":"","requested_units":5000,"unique":1}`, 400,
		"type", "requested_units", "unique")
	s.names("POST", schedules+"/jobs/nightly/backfill", `{"from":"x","to":"y"}`, 422, "from", "to")
	s.names("PUT", schedules+"/jobs/nightly", `{}`, 400, "jobId", "tenantId", "schedule", "handlerId", "lockKey")
	s.names("PUT", schedules+"/jobs/nightly",
		`{"jobId":"other","tenantId":"`+tenantA+`","schedule":{"type":"x"},"handlerId":"h","lockKey":"lock"}`, 422,
		"jobId", "schedule.type", "handlerId")
	s.names("PUT", schedules+"/jobs/nightly", `{"jobId":"other","schedule":{"cron":"x"},"payload":[]}`, 400,
		"jobId", "tenantId", "schedule.type", "schedule.cron", "handlerId", "lockKey", "payload")
	s.names("POST", schedules+"/manifests",
		`{"moduleId":"m","jobs":[{"jobId":"one","schedule":{"type":"interval","seconds":0},"handlerId":"h"}]}`, 400,
		"tenantId", "jobs[0].schedule.seconds", "jobs[0].handlerId", "jobs[0].lockKey")
	s.names("POST", schedules+"/manifests",
		`{"moduleId":"m","jobs":[{"jobId":"one","schedule":{"type":"interval","seconds":0},"handlerId":"h",`+
			`"lockKey":"lock"}]}`, 400, "tenantId", "jobs[0].schedule.seconds", "jobs[0].handlerId")
}
