package httpapi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

// faultsOf sends a request that must be refused and returns the fields that the answer names.
func (s *server) faultsOf(path, body string, status int) (fields []string) {
	s.t.Helper()
	w := s.call("POST", path, body, with(s.admin))
	var p struct{ Errors []lessor.FieldError }
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != status {
		s.t.Errorf("got %d %s (%v), want %d", w.Code, w.Body, err, status)
	}
	for _, e := range p.Errors {
		fields = append(fields, e.Field)
	}
	return fields
}

func TestBatchesNameEveryBadFieldOfEveryEntry(t *testing.T) {
	s := start(t)
	s.schedules("PUT", "/handlers/mail.send", `{"schema":{"properties":{"to":{"type":"string"}}}}`, 201)
	large := `{"a":"` + long(256<<10) + `"}`
	manifest := func(jobs ...string) string {
		return `{"moduleId":"m","tenantId":"` + tenantA + `","jobs":[` + strings.Join(jobs, ",") + `]}`
	}
	for _, c := range []struct {
		name, path, body string
		status           int
		want             []string
	}{
		{
			"jobs", scheduling + "/jobs/batch", `{"jobs":[{"type":"a"},{"type":"","priority":"urgent"},
				{"type":"mail.send","payload":{"to":1},"max_attempts":0},{"type":"b","payload":[]}]}`, 422,
			[]string{
				"jobs[1].type", "jobs[1].priority", "jobs[2].max_attempts", "jobs[2].payload.to",
				"jobs[3].payload",
			},
		},
		{
			"malformed jobs and others", scheduling + "/jobs/batch", `{"jobs":[{"type":"a","priority":"urgent"},
				{"type":7,"tags":"x","requested_units":0},"text",
					{"type":"mail.send","payload":{"to":1},"nope":1}]}`, 400,
			[]string{
				"jobs[0].priority", "jobs[1].type", "jobs[1].tags", "jobs[1].requested_units", "jobs[2]",
				"jobs[3].nope", "jobs[3].payload.to",
			},
		},
		{
			"malformed definitions and others", schedules + "/manifests",
			manifest(definition("x", tenantA),
				strings.Replace(definition("two", tenantA), `"posting.validate"`, "7", 1)),
			400,
			[]string{"jobs[0].jobId", "jobs[1].handlerId"},
		},
		{
			"one job too large", scheduling + "/jobs/batch",
			`{"jobs":[{"type":"a"},{"type":"b","payload":` + large + `},{"type":""}]}`, 413,
			[]string{"jobs[1].payload", "jobs[2].type"},
		},
		{
			"completions", scheduling + "/leases/complete",
			`{"worker_id":"w","leases":[{"lease_id":"x","status":"done"},{"lease_id":"y","status":"ended"}]}`, 422,
			[]string{"leases[0].status", "leases[1].status"},
		},
		{
			"definitions", schedules + "/manifests",
			manifest(definition("x", tenantA), definition("one", tenantB), definition("two", tenantA),
				strings.Replace(definition("two", tenantA), `"@yearly"`, `"60 * * * *"`, 1),
				strings.Replace(definition("two", tenantA), `"posting.validate"`, `"a"`, 1),
				definition("two", tenantA)),
			422,
			[]string{
				"jobs[0].jobId", "jobs[1].tenantId", "jobs[3].schedule.cron", "jobs[4].handlerId",
				"jobs[5].jobId",
			},
		},
		{
			"definition too large", schedules + "/manifests",
			manifest(strings.Replace(definition("two", tenantA), "{", `{"payload":`+large+`,`, 1)), 413,
			[]string{"jobs[0].payload"},
		},
	} {
		if diff := cmp.Diff(c.want, s.faultsOf(c.path, c.body, c.status)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	many := `{"jobs":[` + strings.Repeat(`{"type":"","priority":"no"},`, 999) + `{"type":""}]}`
	if got := s.faultsOf(scheduling+"/jobs/batch", many, 422); len(got) != 100 {
		t.Errorf("1999 bad fields are answered with %d, want 100", len(got))
	}
}

// Every entry of the audit has the trace id of the answer to the call that made it, and is written in camelCase.
func TestAuditNamesTheTraceOfTheAnswer(t *testing.T) {
	s := start(t)
	traces := map[string]string{} // of the last entry about an object
	for _, c := range []struct{ method, path, body, object string }{
		{"PUT", scheduling + "/capacity", `{"total_units":50,"busy":1,"expires_in_s":60}`, "capacity"},
		{"PUT", scheduling + "/drain", `{"draining":true}`, "drain"},
		{"PUT", schedules + "/tenants/" + tenantA, `{"weight":2,"maxConcurrency":4}`, "tenant/" + tenantA},
		{
			"PUT", schedules + "/tenants/" + tenantA + "/classes/bulk", `{"weight":2}`,
			"tenant/" + tenantA + "/class/bulk",
		},
		{"PUT", schedules + "/handlers/mail.send", `{"schema":{"type":"object"}}`, "handler/mail.send"},
		{"PUT", schedules + "/jobs/nightly", definition("nightly", tenantA), "definition/nightly"},
		{"POST", schedules + "/jobs/nightly/trigger", "", "definition/nightly"},
		{"POST", administration + "/tokens", `{"role":"viewer","name":"v"}`, ""},
	} {
		w := s.call(c.method, c.path, c.body, with(s.admin))
		if w.Code >= 300 {
			t.Fatalf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
		traces[c.object] = strings.Split(w.Header().Get("Traceparent"), "-")[1]
	}
	snake := regexp.MustCompile(`"\w*_\w*":`)
	for _, entry := range s.schedules("GET", "/audit", "", 200)["audit"].([]any) {
		e := entry.(map[string]any)
		if e["actor"] == "test" {
			continue // the token of this test was not made by a call
		}
		if id := fmt.Sprint(e["traceId"]); len(id) != 32 {
			t.Errorf("%v has no trace id", e)
		} else if want, ok := traces[fmt.Sprint(e["object"])]; ok && id != want {
			t.Errorf("%v has trace %s, the answer %s", e, id, want)
		}
		delete(traces, fmt.Sprint(e["object"])) // newest first: older entries have another
		if b, _ := json.Marshal(e); snake.Match(b) {
			t.Errorf("%s has a name in snake case", b)
		}
	}
	if delete(traces, ""); len(traces) > 0 {
		t.Errorf("the audit says nothing about %v", traces)
	}
}

func TestManifestVersionIsShownAndAudited(t *testing.T) {
	s := start(t)
	apply := func(version string) map[string]any {
		return s.schedules("POST", "/manifests", `{"moduleId":"m","version":"`+version+`","tenantId":"`+tenantA+
			`","jobs":[`+definition("nightly", tenantA)+`]}`, 200)
	}
	apply("1.0")
	if got := apply("1.1"); fmt.Sprint(got["changed"]) != "[nightly]" {
		t.Errorf("another version made %v, want nightly changed", got)
	}
	if got := apply("1.1"); fmt.Sprint(got["unchanged"]) != "[nightly]" {
		t.Errorf("the same version again made %v, want nightly unchanged", got)
	}
	s.schedules("PUT", "/jobs/nightly", envelope(`"maxAttempts":7`), 200)
	if got := s.schedules("GET", "/jobs/nightly", "", 200)["version"]; got != "1.1" {
		t.Errorf("the definition shows version %v, want 1.1", got)
	}
	var versions []string
	for _, entry := range s.schedules("GET", "/audit?object=definition/nightly", "", 200)["audit"].([]any) {
		versions = append(versions, fmt.Sprint(entry.(map[string]any)["after"].(map[string]any)["version"]))
	}
	if diff := cmp.Diff([]string{"1.1", "1.1", "1.0"}, versions); diff != "" {
		t.Errorf("versions in the audit (-want +got):\n%s", diff)
	}
}
