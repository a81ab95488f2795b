package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lessor"
)

// bad is a request that must be refused and must change nothing. JOB and LEASE in path and body stand for a job that is
// queued and a lease that is held by worker w.
type bad struct {
	name, method, path, body string
	status                   int
	code                     lessor.Code
}

func long(n int) string { return strings.Repeat("x", n) }

// nested is n arrays inside each other.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

const (
	notJSON  = lessor.CodeInvalidRequest
	badVal   = lessor.CodeInvalidValue
	noJob    = lessor.CodeJobNotFound
	noLease  = lessor.CodeLeaseNotFound
	noRoute  = lessor.CodeRouteNotFound
	noMethod = lessor.CodeMethodNotAllowed
	tooBig   = lessor.CodePayloadTooLarge
)

func badSyntax() []bad {
	return []bad{
		{"empty body", "POST", "/jobs", "", 400, notJSON},
		{"only space", "POST", "/jobs", " \n\t ", 400, notJSON},
		{"null", "POST", "/jobs", "null", 400, notJSON},
		{"true", "POST", "/jobs", "true", 400, notJSON},
		{"array", "POST", "/jobs", `[{"type":"x"}]`, 400, notJSON},
		{"text", "POST", "/jobs", "type=x", 400, notJSON},
		{"xml", "POST", "/jobs", "<job/>", 400, notJSON},
		{"yaml", "POST", "/jobs", "type: x", 400, notJSON},
		{"cut", "POST", "/jobs", `{"type":"x"`, 400, notJSON},
		{"cut in text", "POST", "/jobs", `{"type":"x`, 400, notJSON},
		{"cut in escape", "POST", "/jobs", `{"type":"\u00`, 400, notJSON},
		{"bad escape", "POST", "/jobs", `{"type":"\x41"}`, 400, notJSON},
		{"trailing garbage", "POST", "/jobs", `{"type":"x"}}`, 400, notJSON},
		{"two documents", "POST", "/jobs", `{"type":"x"}{"type":"y"}`, 400, notJSON},
		{"trailing NUL", "POST", "/jobs", "{\"type\":\"x\"}\x00", 400, notJSON},
		{"trailing comma", "POST", "/jobs", `{"type":"x",}`, 400, notJSON},
		{"comment", "POST", "/jobs", `{"type":"x" /* c */}`, 400, notJSON},
		{"unquoted name", "POST", "/jobs", `{type:"x"}`, 400, notJSON},
		{"single quotes", "POST", "/jobs", `{'type':'x'}`, 400, notJSON},
		{"BOM", "POST", "/jobs", "\ufeff{\"type\":\"x\"}", 400, notJSON},
		{"UTF-16", "POST", "/jobs", "\xff\xfe{\x00}\x00", 400, notJSON},
		{"invalid UTF-8", "POST", "/jobs", "{\"type\":\"\xff\xfe\"}", 400, notJSON},
		{"overlong UTF-8", "POST", "/jobs", "{\"type\":\"\xc0\xaf\"}", 400, notJSON},
		{"surrogate in UTF-8", "POST", "/jobs", "{\"type\":\"\xed\xa0\x80\"}", 400, notJSON},
		{"invalid UTF-8 in payload", "POST", "/jobs", "{\"type\":\"x\",\"payload\":{\"a\":\"\xff\"}}", 400, notJSON},
		{"raw newline in text", "POST", "/jobs", "{\"type\":\"a\nb\"}", 400, notJSON},
		{"raw NUL in text", "POST", "/jobs", "{\"type\":\"a\x00b\"}", 400, notJSON},
		{"NaN", "POST", "/jobs", `{"type":"x","requested_units":NaN}`, 400, notJSON},
		{"Infinity", "POST", "/jobs", `{"type":"x","requested_units":Infinity}`, 400, notJSON},
		{"leading zero", "POST", "/jobs", `{"type":"x","requested_units":01}`, 400, notJSON},
		{"plus sign", "POST", "/jobs", `{"type":"x","requested_units":+1}`, 400, notJSON},
		{"hexadecimal", "POST", "/jobs", `{"type":"x","requested_units":0x1}`, 400, notJSON},
		{"deep array", "POST", "/jobs", nested(100000), 400, notJSON},
		{"deep payload", "POST", "/jobs", `{"type":"x","payload":{"a":` + nested(2000) + `}}`, 400, notJSON},
		{"deep and open", "POST", "/jobs", `{"type":"x","payload":` + strings.Repeat(`{"a":`, 40000), 400, notJSON},
		{
			"deep checkpoint", "POST", "/leases/LEASE/heartbeat", `{"worker_id":"w","checkpoint":` + nested(2000) + `}`,
			400, notJSON,
		},
	}
}

func badFields() []bad {
	return []bad{
		{"no type", "POST", "/jobs", "{}", 400, notJSON},
		{"type null", "POST", "/jobs", `{"type":null}`, 400, notJSON},
		{"unknown field", "POST", "/jobs", `{"type":"x","nope":1}`, 400, notJSON},
		{"misspelt case", "POST", "/jobs", `{"type":"x","Priority":"low"}`, 400, notJSON},
		{"camel case", "POST", "/jobs", `{"type":"x","maxAttempts":1}`, 400, notJSON},
		{"field of the answer", "POST", "/jobs", `{"type":"x","state":"completed"}`, 400, notJSON},
		{"__proto__", "POST", "/jobs", `{"type":"x","__proto__":{}}`, 400, notJSON},
		{"empty name", "POST", "/jobs", `{"type":"x","":1}`, 400, notJSON},
		{"long name", "POST", "/jobs", `{"type":"x","` + long(100000) + `":1}`, 400, notJSON},
		{"name with NUL", "POST", "/jobs", `{"type":"x","a\u0000":1}`, 400, notJSON},
		{"twice", "POST", "/jobs", `{"type":"x","type":"y"}`, 400, notJSON},
		{"twice through an escape", "POST", "/jobs", `{"type":"x","t\u0079pe":"y"}`, 400, notJSON},
		{"twice in payload", "POST", "/jobs", `{"type":"x","payload":{"a":1,"a":2}}`, 400, notJSON},
		{"unknown in backoff", "POST", "/jobs", `{"type":"x","backoff":{"factor":2}}`, 400, notJSON},
		{"type number", "POST", "/jobs", `{"type":7}`, 400, notJSON},
		{"type object", "POST", "/jobs", `{"type":{}}`, 400, notJSON},
		{"type array", "POST", "/jobs", `{"type":["x"]}`, 400, notJSON},
		{"unique text", "POST", "/jobs", `{"type":"x","unique":"true"}`, 400, notJSON},
		{"unique number", "POST", "/jobs", `{"type":"x","unique":1}`, 400, notJSON},
		{"tags text", "POST", "/jobs", `{"type":"x","tags":"a"}`, 400, notJSON},
		{"tags object", "POST", "/jobs", `{"type":"x","tags":{"0":"a"}}`, 400, notJSON},
		{"tag number", "POST", "/jobs", `{"type":"x","tags":["a",1]}`, 400, notJSON},
		{"tag null", "POST", "/jobs", `{"type":"x","tags":[null]}`, 400, notJSON},
		{"payload array", "POST", "/jobs", `{"type":"x","payload":[]}`, 400, notJSON},
		{"payload text", "POST", "/jobs", `{"type":"x","payload":"{}"}`, 400, notJSON},
		{"payload number", "POST", "/jobs", `{"type":"x","payload":0}`, 400, notJSON},
		{"units text", "POST", "/jobs", `{"type":"x","requested_units":"1"}`, 400, notJSON},
		{"backoff number", "POST", "/jobs", `{"type":"x","backoff":5}`, 400, notJSON},
		{"run_at number", "POST", "/jobs", `{"type":"x","run_at":1700000000}`, 400, notJSON},
		{"batch without jobs", "POST", "/jobs/batch", `{}`, 400, notJSON},
		{"batch of text", "POST", "/jobs/batch", `{"jobs":["x"]}`, 400, notJSON},
		{"batch of nulls", "POST", "/jobs/batch", `{"jobs":[{"type":"x"},null]}`, 400, notJSON},
		{"batch with a bad one", "POST", "/jobs/batch", `{"jobs":[{"type":"x"},{"type":"x","nope":1}]}`, 400, notJSON},
		{"cancel unknown field", "POST", "/jobs/JOB/cancel", `{"forced":true}`, 400, notJSON},
		{"cancel text", "POST", "/jobs/JOB/cancel", `{"force":"yes"}`, 400, notJSON},
		{"retry with a field", "POST", "/jobs/JOB/retry", `{"now":true}`, 400, notJSON},
		{"request without worker", "POST", "/leases/request", `{}`, 400, notJSON},
		{"request types text", "POST", "/leases/request", `{"worker_id":"v","types":"x"}`, 400, notJSON},
		{"heartbeat without worker", "POST", "/leases/LEASE/heartbeat", `{}`, 400, notJSON},
		{"heartbeat empty", "POST", "/leases/LEASE/heartbeat", ``, 400, notJSON},
		{"progress text", "POST", "/leases/LEASE/heartbeat", `{"worker_id":"w","progress":"0.5"}`, 400, notJSON},
		{"complete without status", "POST", "/leases/LEASE/complete", `{"worker_id":"w"}`, 400, notJSON},
		{
			"complete error object", "POST", "/leases/LEASE/complete",
			`{"worker_id":"w","status":"failed","error":{"m":1}}`, 400, notJSON,
		},
		{
			"batched heartbeat ids text", "POST", "/leases/heartbeat", `{"worker_id":"w","lease_ids":"LEASE"}`, 400,
			notJSON,
		},
		{
			"batched complete without id", "POST", "/leases/complete",
			`{"worker_id":"w","leases":[{"status":"failed"}]}`,
			400, notJSON,
		},
		{"drain without field", "PUT", "/drain", `{}`, 400, notJSON},
		{"drain number", "PUT", "/drain", `{"draining":1}`, 400, notJSON},
		{"capacity text", "PUT", "/capacity", `{"busy":"host"}`, 400, notJSON},
		{"capacity unknown field", "PUT", "/capacity", `{"reserve_units":0}`, 400, notJSON},
		{"unknown query parameter", "GET", "/jobs?stat=queued", "", 400, notJSON},
		{"query on a POST", "POST", "/jobs?type=x", `{"type":"x"}`, 400, notJSON},
		{"query parameter twice", "GET", "/jobs?limit=1&limit=2", "", 400, notJSON},
		{"query with semicolon", "GET", "/jobs?limit=1;cursor=2", "", 400, notJSON},
		{"query badly escaped", "GET", "/jobs?type=%zz", "", 400, notJSON},
	}
}

func badValues() []bad {
	return []bad{
		{"type empty", "POST", "/jobs", `{"type":""}`, 422, badVal},
		{"type too long", "POST", "/jobs", `{"type":"` + long(121) + `"}`, 422, badVal},
		{"type with NUL", "POST", "/jobs", `{"type":"x\u0000"}`, 422, badVal},
		{"type lone high surrogate", "POST", "/jobs", `{"type":"\ud800"}`, 422, badVal},
		{"type lone low surrogate", "POST", "/jobs", `{"type":"\udc00x"}`, 422, badVal},
		{"priority unknown", "POST", "/jobs", `{"type":"x","priority":"urgent"}`, 422, badVal},
		{"priority upper case", "POST", "/jobs", `{"type":"x","priority":"HIGH"}`, 422, badVal},
		{"priority empty", "POST", "/jobs", `{"type":"x","priority":""}`, 422, badVal},
		{"units zero", "POST", "/jobs", `{"type":"x","requested_units":0}`, 422, badVal},
		{"units negative", "POST", "/jobs", `{"type":"x","requested_units":-1}`, 422, badVal},
		{"units never fit", "POST", "/jobs", `{"type":"x","requested_units":96}`, 422, badVal},
		{"units fraction", "POST", "/jobs", `{"type":"x","requested_units":1.5}`, 422, badVal},
		{"units exponent", "POST", "/jobs", `{"type":"x","requested_units":1e3}`, 422, badVal},
		{"units huge", "POST", "/jobs", `{"type":"x","requested_units":9223372036854775807}`, 422, badVal},
		{"units beyond 64 bits", "POST", "/jobs", `{"type":"x","requested_units":99999999999999999999}`, 422, badVal},
		{
			"units absurd", "POST", "/jobs", `{"type":"x","requested_units":` + strings.Repeat("9", 100000) + `}`, 422,
			badVal,
		},
		{"attempts zero", "POST", "/jobs", `{"type":"x","max_attempts":0}`, 422, badVal},
		{"attempts 51", "POST", "/jobs", `{"type":"x","max_attempts":51}`, 422, badVal},
		{"runtime zero", "POST", "/jobs", `{"type":"x","max_runtime_s":0}`, 422, badVal},
		{"runtime overflows", "POST", "/jobs", `{"type":"x","max_runtime_s":9223372036854775807}`, 422, badVal},
		{"key empty", "POST", "/jobs", `{"type":"x","idempotency_key":""}`, 422, badVal},
		{"key too long", "POST", "/jobs", `{"type":"x","idempotency_key":"` + long(201) + `"}`, 422, badVal},
		{"lock too short", "POST", "/jobs", `{"type":"x","lock_key":"ab"}`, 422, badVal},
		{"21 tags", "POST", "/jobs", `{"type":"x","tags":[` + strings.Repeat(`"t",`, 20) + `"t"]}`, 422, badVal},
		{"tag empty", "POST", "/jobs", `{"type":"x","tags":[""]}`, 422, badVal},
		{"tag too long", "POST", "/jobs", `{"type":"x","tags":["` + long(81) + `"]}`, 422, badVal},
		{"tag with NUL", "POST", "/jobs", `{"type":"x","tags":["\u0000"]}`, 422, badVal},
		{"run_at no time", "POST", "/jobs", `{"type":"x","run_at":"soon"}`, 422, badVal},
		{"run_at no such day", "POST", "/jobs", `{"type":"x","run_at":"2030-02-30T00:00:00Z"}`, 422, badVal},
		{"run_at year 10000", "POST", "/jobs", `{"type":"x","run_at":"10000-01-01T00:00:00Z"}`, 422, badVal},
		{"tenant no uuid", "POST", "/jobs", `{"type":"x","tenant_id":"acme"}`, 422, badVal},
		{"tenant in braces", "POST", "/jobs", `{"type":"x","tenant_id":"{` + tenantA + `}"}`, 422, badVal},
		{"backoff negative", "POST", "/jobs", `{"type":"x","backoff":{"first_ms":-1}}`, 422, badVal},
		{"backoff upside down", "POST", "/jobs", `{"type":"x","backoff":{"first_ms":10,"max_ms":5}}`, 422, badVal},
		{"backoff overflows", "POST", "/jobs", `{"type":"x","backoff":{"first_ms":9223372036854775807}}`, 422, badVal},
		{"batch empty", "POST", "/jobs/batch", `{"jobs":[]}`, 422, badVal},
		{
			"batch of 1001", "POST", "/jobs/batch",
			`{"jobs":[` + strings.Repeat(`{"type":"x"},`, 1000) + `{"type":"x"}]}`,
			422, badVal,
		},
		{
			"batch with one bad value", "POST", "/jobs/batch", `{"jobs":[{"type":"x"},{"type":"x","priority":"no"}]}`,
			422,
			badVal,
		},
		{"worker empty", "POST", "/leases/request", `{"worker_id":""}`, 422, badVal},
		{"worker with NUL", "POST", "/leases/request", `{"worker_id":"v\u0000"}`, 422, badVal},
		{"max_units zero", "POST", "/leases/request", `{"worker_id":"v","max_units":0}`, 422, badVal},
		{"max_leases zero", "POST", "/leases/request", `{"worker_id":"v","max_leases":0}`, 422, badVal},
		{"max_leases 501", "POST", "/leases/request", `{"worker_id":"v","max_leases":501}`, 422, badVal},
		{"wait too long", "POST", "/leases/request", `{"worker_id":"v","wait_ms":30001}`, 422, badVal},
		{"wait overflows", "POST", "/leases/request", `{"worker_id":"v","wait_ms":9223372036854775807}`, 422, badVal},
		{"wait negative", "POST", "/leases/request", `{"worker_id":"v","wait_ms":-1}`, 422, badVal},
		{"ttl too short", "POST", "/leases/request", `{"worker_id":"v","ttl_ms":99}`, 422, badVal},
		{"ttl too long", "POST", "/leases/request", `{"worker_id":"v","ttl_ms":43200001}`, 422, badVal},
		{"progress above 1", "POST", "/leases/LEASE/heartbeat", `{"worker_id":"w","progress":1.0001}`, 422, badVal},
		{"progress below 0", "POST", "/leases/LEASE/heartbeat", `{"worker_id":"w","progress":-0.1}`, 422, badVal},
		{"progress huge", "POST", "/leases/LEASE/heartbeat", `{"worker_id":"w","progress":1e999}`, 422, badVal},
		{
			"message too long", "POST", "/leases/LEASE/heartbeat", `{"worker_id":"w","message":"` + long(501) + `"}`,
			422,
			badVal,
		},
		{
			"checkpoint too large", "POST", "/leases/LEASE/heartbeat",
			`{"worker_id":"w","checkpoint":"` + long(64<<10) + `"}`, 422, badVal,
		},
		{"status unknown", "POST", "/leases/LEASE/complete", `{"worker_id":"w","status":"done"}`, 422, badVal},
		{
			"error too long", "POST", "/leases/LEASE/complete",
			`{"worker_id":"w","status":"failed","error":"` + long(8<<10+1) + `"}`, 422, badVal,
		},
		{"delay negative", "POST", "/leases/LEASE/release", `{"worker_id":"w","delay_ms":-1}`, 422, badVal},
		{"reason too long", "POST", "/leases/LEASE/revoke", `{"reason":"` + long(201) + `"}`, 422, badVal},
		{"busy 11", "PUT", "/capacity", `{"busy":11}`, 422, badVal},
		{"busy negative", "PUT", "/capacity", `{"busy":-1}`, 422, badVal},
		{"total below reserve", "PUT", "/capacity", `{"total_units":5}`, 422, badVal},
		{"empty query value", "GET", "/jobs?state=", "", 422, badVal},
		{"query without value", "GET", "/jobs?limit", "", 422, badVal},
		{"empty cursor", "GET", "/leases?cursor=", "", 422, badVal},
		{"limit zero", "GET", "/jobs?limit=0", "", 422, badVal},
		{"limit 1001", "GET", "/jobs?limit=1001", "", 422, badVal},
		{"limit word", "GET", "/jobs?limit=all", "", 422, badVal},
		{"limit huge", "GET", "/jobs?limit=99999999999999999999", "", 422, badVal},
		{"state unknown", "GET", "/jobs?state=done", "", 422, badVal},
		{"tenant in query no uuid", "GET", "/jobs?tenant_id=acme", "", 422, badVal},
		{"cursor made up", "GET", "/jobs?cursor=zzz", "", 422, badVal},
		{"NUL in query", "GET", "/jobs?type=%00", "", 422, badVal},
		{"invalid UTF-8 in query", "GET", "/jobs?type=%ff", "", 422, badVal},
		{"query value too long", "GET", "/jobs?type=" + long(1001), "", 422, badVal},
	}
}

func badPlaces() []bad {
	return []bad{
		{"no such job", "GET", "/jobs/" + nowhere, "", 404, noJob},
		{"job id word", "GET", "/jobs/first", "", 404, noJob},
		{"job id nil", "GET", "/jobs/00000000-0000-0000-0000-000000000000", "", 404, noJob},
		{"job id in braces", "GET", "/jobs/%7BJOB%7D", "", 404, noJob},
		{"job id with space", "GET", "/jobs/JOB%20", "", 404, noJob},
		{"job id with NUL", "GET", "/jobs/JOB%00", "", 404, noJob},
		{"job id with slash", "GET", "/jobs/JOB%2Fevents", "", 404, noJob},
		{"job id dots", "GET", "/jobs/%2e%2e", "", 404, noJob},
		{"job id climbs", "GET", "/jobs/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "", 404, noJob},
		{"job id quoted", "GET", "/jobs/'%20or%201=1--", "", 404, noJob},
		{"job id invalid UTF-8", "GET", "/jobs/%ff%fe", "", 404, noJob},
		{"job id unicode", "GET", "/jobs/%D9%A0%D9%A1", "", 404, noJob},
		{"job id long", "GET", "/jobs/" + long(5000), "", 404, noJob},
		{"lease id for job id", "GET", "/jobs/LEASE", "", 404, noJob},
		{"cancel no job", "POST", "/jobs/x/cancel", "", 404, noJob},
		{"no such lease", "POST", "/leases/" + nowhere + "/heartbeat", `{"worker_id":"w"}`, 404, noLease},
		{"lease id word", "POST", "/leases/mine/heartbeat", `{"worker_id":"w"}`, 404, noLease},
		{"job id for lease id", "POST", "/leases/JOB/complete", `{"worker_id":"w","status":"failed"}`, 404, noLease},
		{
			"not found before mismatch", "POST", "/leases/" + nowhere + "/heartbeat", `{"worker_id":"other"}`, 404,
			noLease,
		},
		{
			"other worker beats", "POST", "/leases/LEASE/heartbeat", `{"worker_id":"other"}`, 403,
			lessor.CodeWorkerMismatch,
		},
		{
			"other worker completes", "POST", "/leases/LEASE/complete", `{"worker_id":"other","status":"completed"}`,
			403,
			lessor.CodeWorkerMismatch,
		},
		{"other worker releases", "POST", "/leases/LEASE/release", `{"worker_id":"W"}`, 403, lessor.CodeWorkerMismatch},
		{
			"cancelled without request", "POST", "/leases/LEASE/complete", `{"worker_id":"w","status":"cancelled"}`,
			409,
			lessor.CodeConflict,
		},
		{"retry of a queued job", "POST", "/jobs/JOB/retry", "", 409, lessor.CodeConflict},
		{
			"key with another body", "POST", "/jobs", `{"type":"other","idempotency_key":"taken"}`, 409,
			lessor.CodeConflict,
		},
		{"job too large", "POST", "/jobs", `{"type":"x","payload":{"a":"` + long(256<<10) + `"}}`, 413, tooBig},
		{
			"heartbeat too large", "POST", "/leases/LEASE/heartbeat",
			`{"worker_id":"w","message":"` + long(100<<10) + `"}`, 413, tooBig,
		},
		{
			"batched job too large", "POST", "/jobs/batch",
			`{"jobs":[{"type":"x"},{"type":"x","payload":{"a":"` + long(256<<10) + `"}}]}`, 413, tooBig,
		},
		{
			"cancel too large", "POST", "/jobs/JOB/cancel", `{"force":` + strings.Repeat(" ", 5000) + `true}`, 413,
			tooBig,
		},
		{"no such route", "GET", "/nothing", "", 404, noRoute},
		{"slash behind", "GET", "/jobs/", "", 404, noRoute},
		{"two slashes", "GET", "//jobs", "", 404, noRoute},
		{"dot", "GET", "/./jobs", "", 404, noRoute},
		{"dots", "GET", "/jobs/../status", "", 404, noRoute},
		{"case", "GET", "/Jobs", "", 404, noRoute},
		{"below a job", "GET", "/jobs/JOB/payload", "", 404, noRoute},
		{"DELETE jobs", "DELETE", "/jobs", "", 405, noMethod},
		{"DELETE job", "DELETE", "/jobs/JOB", "", 405, noMethod},
		{"PUT job", "PUT", "/jobs/JOB", `{"type":"x"}`, 405, noMethod},
		{"GET cancel", "GET", "/jobs/JOB/cancel", "", 405, noMethod},
		{"GET request", "GET", "/leases/request", "", 405, noMethod},
		{"POST drain", "POST", "/drain", `{"draining":true}`, 405, noMethod},
		{"POST status", "POST", "/status", "", 405, noMethod},
		{"TRACE", "TRACE", "/jobs", "", 405, noMethod},
		{"made-up method", "FROBNICATE", "/jobs", "", 405, noMethod},
	}
}

// states are the lists of each part of the API that together show whether anything changed; whatever changes a
// definition, a tenant or a handler is in the audit.
var states = map[string][]string{
	scheduling: {"/jobs?limit=1000", "/leases", "/status", "/capacity"},
	schedules:  {"/audit?limit=1000", "/runs"},
}

// run sends every row to handler and checks that it got its refusal, that nothing changed, and that the server lives.
func run(t *testing.T, send func(method, path, body string) *httptest.ResponseRecorder, base string, rows []bad) {
	t.Helper()
	state := func() string {
		var all []string
		for _, path := range states[base] {
			w := send("GET", base+path, "")
			if w.Code != http.StatusOK {
				t.Fatalf("the server no longer answers %s: %d %s", path, w.Code, w.Body)
			}
			all = append(all, w.Body.String())
		}
		return strings.Join(all, "")
	}
	before := state()
	for _, row := range rows {
		w := send(row.method, base+row.path, row.body)
		p := decoded(t, w)
		if w.Code != row.status || p["code"] != string(row.code) {
			t.Errorf("%s: got %d %s, want %d %s", row.name, w.Code, shorten(w.Body.String(), 300), row.status, row.code)
		}
		if w.Body.Len() > 4096 {
			t.Errorf("%s: the refusal has %d bytes: it repeats what was sent", row.name, w.Body.Len())
		}
		if after := state(); after != before {
			t.Fatalf("%s changed something:\n%s\n%s", row.name, before, after)
		}
	}
}

func TestBadInputIsRefusedAndChangesNothing(t *testing.T) {
	s := start(t)
	s.api("POST", "/jobs", `{"type":"held"}`, 201)
	g := s.api("POST", "/leases/request", `{"worker_id":"w","ttl_ms":43200000}`, 200) // it must not lapse in a slow run
	job := s.api("POST", "/jobs", `{"type":"waits","idempotency_key":"taken"}`, 201)["job_id"].(string)
	ids := strings.NewReplacer("LEASE", g["lease"].(map[string]any)["lease_id"].(string), "JOB", job)
	rows := append(append(badSyntax(), badFields()...), append(badValues(), badPlaces()...)...)
	if len(rows) < 100 {
		t.Errorf("%d rows, want at least 100", len(rows))
	}
	send := func(method, path, body string) *httptest.ResponseRecorder {
		return s.call(method, ids.Replace(path), ids.Replace(body), with(s.admin))
	}
	run(t, send, scheduling, rows)
	if log := s.log.String(); log != "" {
		t.Errorf("what callers did wrong is in the log: %s", log)
	}
	for path, says := range map[string]string{
		"/jobs":              "begin with /api/system/scheduler", // as newcomers call it
		scheduling + "/jobs": "this route has no DELETE, only GET, HEAD, POST",
	} {
		if w := s.call("DELETE", path, "", with(s.admin)); !strings.Contains(w.Body.String(), says) {
			t.Errorf("DELETE %s answers %s, want %q in it", path, w.Body, says)
		}
	}
	// Only a caller that may send a request learns what is wrong with it: without a token there is nothing to learn.
	for _, row := range rows {
		if strings.HasPrefix(row.path, "/drain") || strings.HasSuffix(row.path, "/revoke") {
			if w := s.call(row.method, scheduling+ids.Replace(row.path), row.body); w.Code != 401 && w.Code != 405 {
				t.Errorf("%s without a token: %d", row.name, w.Code)
			}
		}
	}
}
