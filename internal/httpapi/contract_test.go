package httpapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lessor"
	"lessor/internal/quota"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres"
	"lessor/internal/token"
)

// impossible are answers that the document allows by rule and that no request can provoke.
var impossible = map[string]string{
	"GET /health/live internal":                                         "it calls nothing",
	"GET /health/live unavailable":                                      "it says that the process answers",
	"GET /openapi.json internal":                                        "it calls nothing",
	"GET " + administration + "/log-level internal":                     "it calls nothing",
	"PUT " + administration + "/log-level internal":                     "it calls nothing",
	"GET " + administration + "/pprof/{profile} internal":               "it calls nothing of the scheduler",
	"GET /metrics internal":                                             "it calls nothing",
	"POST " + scheduling + "/jobs/{job_id}/cancel invalid_value":        "its body has no values but true and false",
	"POST " + scheduling + "/jobs/{job_id}/retry invalid_value":         "its body has no fields",
	"PUT " + scheduling + "/drain invalid_value":                        "its body has no values but true and false",
	"POST " + schedules + "/jobs/{jobId}/pause invalid_value":           "its body has no fields",
	"POST " + schedules + "/alerts/{alertId}/acknowledge invalid_value": "its body has no fields",
	"POST " + schedules + "/jobs/{jobId}/resume invalid_value":          "its body has no fields",
	"POST " + schedules + "/jobs/{jobId}/trigger invalid_value":         "its body has no fields",
	"POST " + schedules + "/jobs/{jobId}/circuit/reset invalid_value":   "its body has no fields",
	"POST " + administration + "/recovery/scan invalid_value":           "its body has no fields",
	"POST " + administration + "/jobs/{jobId}/mark-dead invalid_value":  "its body has no fields",
	"POST " + administration + "/recovery/jobs/resume invalid_value":    "an id that is none is the id of no job",
}

// Every route is called, and every answer that the document has for it, success or refusal, is provoked and checked
// against the document.
func TestEveryAnswerKeepsTheContract(t *testing.T) {
	c := newContract()
	s := start(t)
	s.contract = c
	walkJobs(s)
	walkLeases(s)
	walkState(s)
	walkSchedules(s)
	walkRecovery(s)
	walkDiagnostics(s)
	walkRefusals(s)
	walkFaults(t, c)
	walkPostgres(t, c)
	table := routes(defaultPayloadLimit)
	for i := range table {
		rt := &table[i]
		var want []string
		for _, a := range rt.answers {
			want = append(want, strconv.Itoa(a.status))
		}
		for _, cs := range refusalsOf(rt) {
			want = append(want, cs...)
		}
		for _, answer := range want {
			key := rt.method + " " + rt.path + " " + answer
			if answer == string(lessor.CodeRateLimited) && !slices.Contains(rt.refusals, lessor.CodeRateLimited) {
				continue // the scheduler's, when its line of calls is full: its own tests fill it
			}
			if !c.seen[key] && impossible[key] == "" {
				t.Errorf("%s was never answered", key)
			}
			if c.seen[key] && impossible[key] != "" {
				t.Errorf("%s was answered, though %s", key, impossible[key])
			}
		}
	}
	if t.Failed() {
		t.Logf("answers seen:\n%s", strings.Join(slices.Sorted(maps.Keys(c.seen)), "\n"))
	}
}

func walkJobs(s *server) {
	j := s.api("POST", "/jobs",
		`{"type":"a","idempotency_key":"k","tags":["x"],"run_at":"2030-01-01T00:00:00Z",
			"backoff":{"first_ms":1,"max_ms":2},"max_runtime_s":9,"lock_key":"lock"}`, 201)
	s.api("POST", "/jobs",
		`{"type":"a","idempotency_key":"k","tags":["x"],"run_at":"2030-01-01T00:00:00Z",
			"backoff":{"first_ms":1,"max_ms":2},"max_runtime_s":9,"lock_key":"lock"}`, 200)
	s.api("POST", "/jobs", `{"type":"b","idempotency_key":"k"}`, 409)
	s.api("POST", "/jobs", `{"type":""}`, 422)
	s.api("POST", "/jobs/batch", `{"jobs":[{"type":"b"},{"type":"b","priority":"high"}]}`, 201)
	s.api("POST", "/jobs/batch", `{"jobs":[{"type":"b"},{"type":"b","idempotency_key":"k"}]}`, 409)
	ids := s.api("POST", "/jobs/batch", `{"view":"ids","jobs":[{"type":"b"},{"type":"b"}]}`, 201)["job_ids"].([]any)
	if len(ids) != 2 || s.api("GET", "/jobs/"+ids[1].(string), "", 200)["type"] != "b" {
		s.t.Errorf("a batch of two with view ids answered %v", ids)
	}
	s.api("POST", "/jobs/batch", `{"jobs":[]}`, 422)
	s.api("POST", "/jobs/batch", `{"jobs":[{"type":"b"}],"view":"work"}`, 422)
	page := s.api("GET", "/jobs?limit=1&state=queued", "", 200)
	s.api("GET", "/jobs?limit=1&cursor="+page["next_cursor"].(string), "", 200)
	s.api("GET", "/jobs?limit=0", "", 422)
	job := "/jobs/" + j["job_id"].(string)
	s.api("GET", job, "", 200)
	s.api("GET", job+"/events", "", 200)
	s.api("GET", job+"/events?limit=x", "", 422)
	s.api("GET", job+"/why", "", 200)
	s.api("POST", job+"/retry", "", 409)
	s.api("POST", job+"/cancel", `{"force":true}`, 200)
	s.api("POST", job+"/retry", "{}", 200)
	for _, sub := range []string{"", "/events", "/why"} {
		s.api("GET", "/jobs/"+nowhere+sub, "", 404)
		s.api("GET", "/jobs/ill-formed"+sub, "", 404)
	}
	s.api("POST", "/jobs/"+nowhere+"/cancel", "", 404)
	s.api("POST", "/jobs/"+nowhere+"/retry", "", 404)
}

func walkJournal(s *server, job, held string) {
	one := `{"worker_id":"w","entries":[{"key":"a","kind":"step","data":{"n":1.0}},{"key":"b"}]}`
	for range 2 {
		answer := s.api("POST", held+"/journal", one, 200)
		if numbers := fmt.Sprint(answer["numbers"]); numbers != "[1 2]" {
			s.t.Errorf("two entries have the numbers %s, want 1 and 2", numbers)
		}
	}
	s.api("POST", held+"/journal", `{"worker_id":"w","entries":[{"key":"a","data":2}]}`, 409)
	s.api("POST", held+"/journal", strings.Replace(one, `"w"`, `"other"`, 1), 403)
	page := s.api("GET", job+"/journal?limit=1&after=0", "", 200)
	if entries, _ := page["journal"].([]any); len(entries) != 1 || page["next_cursor"] != "1" {
		s.t.Errorf("the first page of one entry is %v, want one, and the cursor 1", page)
	}
	if page = s.api("GET", job+"/journal?after=1", "", 200); page["next_cursor"] != nil {
		s.t.Errorf("the last page is %v, want no cursor", page)
	}
	s.api("GET", job+"/journal?after=-1", "", 422)
	s.api("GET", "/jobs/"+nowhere+"/journal", "", 404)
	if n := s.api("GET", job, "", 200)["journal_entries"]; fmt.Sprint(n) != "2" {
		s.t.Errorf("the job shows %v journal entries, want 2", n)
	}
}

// lease gets a new lease for worker w.
func lease(s *server) (job, path string) {
	s.t.Helper()
	s.api("POST", "/jobs", `{"type":"walk"}`, 201)
	g := s.api("POST", "/leases/request",
		`{"worker_id":"w","types":["walk"],"max_units":9,"ttl_ms":5000,"workspace_id":"x"}`, 200)
	return "/jobs/" + g["job"].(map[string]any)["job_id"].(string), "/leases/" +
		g["lease"].(map[string]any)["lease_id"].(string)
}

func walkLeases(s *server) {
	job, held := lease(s)
	s.api("POST", held+"/heartbeat", `{"worker_id":"w","progress":0.5,"message":"m","checkpoint":{"at":1}}`, 200)
	s.api("POST", held+"/heartbeat", `{"worker_id":"other"}`, 403)
	walkJournal(s, job, held)
	const printed = `{"worker_id":"w","chunks":[{"stream":"stdout","offset":0,"data":"aGVsbG8="}]}`
	s.api("POST", held+"/output", printed, 200)
	s.api("POST", held+"/output", strings.Replace(printed, `"w"`, `"other"`, 1), 403)
	for right, wrong := range map[string]string{`"stdout"`: `"log"`, `0`: `-1`, `aGVsbG8=`: `not base64`} {
		s.api("POST", held+"/output", strings.Replace(printed, right, wrong, 1), 422)
	}
	if out := s.api("GET", job+"/output?wait_ms=30000", "", 200); out["data"] != "aGVsbG8=" || out["ended"] != false {
		s.t.Errorf("the output is %v", out)
	}
	s.api("GET", job+"/output?stream=stderr&attempt=1&offset=-5", "", 200)
	s.api("GET", job+"/output?stream=log", "", 422)
	s.api("GET", job+"/output?fence=-1", "", 422)
	s.api("GET", job+"/output?fence=1", "", 404)
	fence := s.api("GET", job+"/output", "", 200)["leases"].([]any)[0].(map[string]any)["fence"]
	out := s.api("GET", fmt.Sprintf("%s/output?attempt=1&fence=%v", job, fence), "", 200)
	if out["data"] != "aGVsbG8=" {
		s.t.Errorf("the output by its fence is %v", out)
	}
	s.api("GET", "/jobs/"+nowhere+"/output", "", 404)
	s.api("POST", held+"/complete", `{"worker_id":"other","status":"failed"}`, 403)
	s.api("POST", held+"/release", `{"worker_id":"other"}`, 403)
	s.api("POST", held+"/complete", `{"worker_id":"w","status":"cancelled"}`, 409)
	s.api("GET", "/leases?worker_id=w", "", 200)
	s.api("GET", "/leases?limit=1001", "", 422)
	s.api("POST", held+"/complete", `{"worker_id":"w","status":"completed","result":[1]}`, 200)
	s.api("POST", job+"/cancel", "", 409)
	p := s.api("POST", held+"/heartbeat", `{"worker_id":"w"}`, 404)
	if p["ended_reason"] != "completed" {
		s.t.Errorf("a heartbeat after the end says %v, want ended_reason completed", p)
	}
	walkDialog(s)
	_, held = lease(s)
	s.api("POST", held+"/release", `{"worker_id":"w","delay_ms":1000}`, 200)
	_, held = lease(s)
	s.api("POST", held+"/revoke", `{"reason":"because"}`, 200)
	for verb, bad := range map[string]string{
		"/output":    `{"worker_id":"","chunks":[]}`,
		"/heartbeat": `{"worker_id":""}`, "/complete": `{"worker_id":"w","status":"odd"}`,
		"/release": `{"worker_id":"w","delay_ms":-1}`,
		"/journal": `{"worker_id":"w","entries":[{"key":""}]}`,
		"/revoke":  `{"reason":"` + strings.Repeat("x", 201) + `"}`,
	} {
		s.api("POST", "/leases/"+nowhere+verb, bad, 422)
		good := map[string]string{
			"/complete": `{"worker_id":"w","status":"failed","error":"e","retryable":false}`,
			"/revoke":   "",
			"/journal":  `{"worker_id":"w","entries":[{"key":"k"}]}`,
			"/output":   printed,
		}
		body, ok := good[verb]
		if !ok {
			body = `{"worker_id":"w"}`
		}
		s.api("POST", "/leases/"+nowhere+verb, body, 404)
		s.api("POST", "/leases/ill-formed"+verb, body, 404)
	}
	walkBatches(s)
}

func walkDialog(s *server) {
	job, held := lease(s)
	s.api("POST", held+"/complete", `{"worker_id":"w","status":"waiting","checkpoint":{"at":1},"expires_in_s":60,
		"question":{"text":"Deploy?","choices":["yes","no"]}}`, 200)
	waiting := s.api("GET", job, "", 200)
	question := fmt.Sprint(waiting["question"].(map[string]any)["question_id"])
	s.api("POST", job+"/answer", fmt.Sprintf(`{"question_id":%q,"answer":"perhaps"}`, question), 422)
	s.api("POST", job+"/answer", fmt.Sprintf(`{"question_id":%q,"answer":"yes"}`, nowhere), 409)
	s.api("POST", job+"/answer", fmt.Sprintf(`{"question_id":%q,"answer":"yes"}`, question), 200)
	s.api("POST", "/jobs/"+nowhere+"/answer", `{"question_id":"x","answer":"yes"}`, 404)
	job, held = lease(s)
	s.api("POST", job+"/messages", `{"text":"hello"}`, 201)
	s.api("POST", job+"/messages", `{"text":""}`, 422)
	beat := s.api("POST", held+"/heartbeat", `{"worker_id":"w"}`, 200)
	if ms := beat["messages"].([]any); len(ms) != 1 || ms[0].(map[string]any)["text"] != "hello" {
		s.t.Errorf("a heartbeat is answered with the messages %v", ms)
	}
	beat = s.api("POST", held+"/heartbeat", `{"worker_id":"w","messages_seen":1}`, 200)
	if ms := beat["messages"].([]any); len(ms) != 0 {
		s.t.Errorf("messages come again: %v", ms)
	}
	s.api("POST", held+"/complete", `{"worker_id":"w","status":"completed"}`, 200)
	s.api("POST", job+"/messages", `{"text":"too late"}`, 409)
	s.api("POST", "/jobs/"+nowhere+"/messages", `{"text":"hello"}`, 404)
}

func walkBatches(s *server) {
	s.api("POST", "/jobs/batch", `{"jobs":[{"type":"many"},{"type":"many"}]}`, 201)
	g := s.api("POST", "/leases/request",
		`{"worker_id":"w","types":["many"],"max_leases":2,"request_id":"r","wait_ms":1}`, 200)
	if n := len(g["grants"].([]any)); n != 2 {
		s.t.Fatalf("%d grants, want 2", n)
	}
	id := g["grants"].([]any)[0].(map[string]any)["lease"].(map[string]any)["lease_id"]
	denial := s.api("POST", "/leases/request", `{"worker_id":"w","types":["none such"]}`, 200)
	if denial["denied"] != true || denial["code"] != "no_eligible_job" {
		s.t.Errorf("denial is %v", denial)
	}
	s.api("POST", "/leases/request", `{"worker_id":""}`, 422)
	turned := s.api("POST", "/leases/turn", fmt.Sprintf(`{"worker_id":"w","heartbeat":[%q,"x"],
		"complete":[{"lease_id":"y","status":"completed"}],
		"request":{"types":["many"],"max_leases":2,"request_id":"r","view":"work"}}`, id), 200)
	if n := len(turned["request"].(map[string]any)["grants"].([]any)); n != 2 || len(turned["heartbeat"].([]any)) != 2 {
		s.t.Errorf("the turn is answered %v", turned)
	}
	s.api("POST", "/leases/turn", `{"worker_id":"w","request":{"types":["none such"]}}`, 200)
	s.api("POST", "/leases/turn", `{"worker_id":"w"}`, 422)
	s.api("POST", "/leases/heartbeat", fmt.Sprintf(`{"worker_id":"w","lease_ids":[%q,%q,"x"]}`, id, nowhere), 200)
	s.api("POST", "/leases/heartbeat", `{"worker_id":"w","lease_ids":[]}`, 422)
	granted := g["grants"].([]any)[0].(map[string]any)["job"].(map[string]any)["job_id"]
	s.api("POST", fmt.Sprintf("/jobs/%v/cancel", granted), `{}`, 200)
	cancelled := s.api("POST", "/leases/cancelled", `{"worker_id":"w","wait_ms":30000}`, 200)
	if fmt.Sprint(cancelled["lease_ids"]) != fmt.Sprintf("[%s]", id) {
		s.t.Errorf("cancelled leases are %v, want %v", cancelled, id)
	}
	s.api("POST", "/leases/cancelled", `{"worker_id":"w","wait_ms":30001}`, 422)
	got := s.api("POST", "/leases/complete",
		fmt.Sprintf(`{"worker_id":"w","leases":[{"lease_id":%q,"status":"completed"},
			{"lease_id":%q,"status":"failed"}]}`, id, nowhere), 200)
	rs := got["results"].([]any)
	if first, second := rs[0].(map[string]any), rs[1].(map[string]any); first["ok"] != true || second["ok"] != false ||
		second["code"] != "lease_not_found" || fmt.Sprint(second["status"]) != "404" {
		s.t.Errorf("results are %v", rs)
	}
	s.api("POST", "/leases/complete", `{"worker_id":"w","leases":[]}`, 422)
	ended := fmt.Sprint("/jobs/", g["grants"].([]any)[0].(map[string]any)["job"].(map[string]any)["job_id"])
	if got := s.api("GET", ended+"?wait_ms=30000", "", 200); got["state"] != "completed" {
		s.t.Errorf("the job that was waited for is %v, want completed", got["state"])
	}
	s.api("GET", ended+"?wait_ms=30001", "", 422)
	s.api("GET", ended+"?wait_ms=soon", "", 422)
}

func walkState(s *server) {
	s.api("GET", "/capacity", "", 200)
	s.api("PUT", "/capacity", `{"busy":3,"total_units":50,"expires_in_s":60}`, 200)
	s.api("PUT", "/capacity", `{"busy":null,"total_units":null}`, 200)
	s.api("PUT", "/capacity", `{"busy":11}`, 422)
	s.api("PUT", "/drain", `{"draining":true}`, 200)
	s.api("POST", "/leases/request", `{"worker_id":"w"}`, 200)
	s.api("PUT", "/drain", `{"draining":false}`, 200)
	s.api("GET", "/status", "", 200)
	s.api("GET", "/workers", "", 200)
	s.api("GET", "/workers?limit=0", "", 422)
	gone, cancel := context.WithCancel(s.t.Context())
	cancel()
	s.call("GET", scheduling+"/events", "", with(s.admin), func(r *http.Request) { *r = *r.WithContext(gone) })
	for _, path := range []string{
		"/health/live", "/health/ready", "/metrics", "/openapi.json", "/api/admin/backup",
		"/api/admin/doctor", "/api/admin/tokens",
	} {
		s.call("GET", path, "", with(s.admin))
	}
	made := decoded(s.t, s.call("POST", "/api/admin/tokens",
		`{"role":"viewer","tenantId":"`+tenantA+`","expiresInSeconds":60,"name":"n"}`, with(s.admin)))
	s.call("GET", "/api/admin/tokens?limit=1", "", with(s.admin))
	s.call("GET", "/api/admin/tokens?limit=0", "", with(s.admin))
	s.call("POST", "/api/admin/tokens", `{"role":"root"}`, with(s.admin))
	s.call("DELETE", "/api/admin/tokens/"+made["id"].(string), "", with(s.admin))
	s.call("DELETE", "/api/admin/tokens/"+made["id"].(string), "", with(s.admin))
	s.call("DELETE", "/api/admin/tokens/x", "", with(s.admin))
}

// walkRefusals provokes what every route refuses alike, and what its limits refuse.
func walkRefusals(s *server) {
	for i, rt := range routes(defaultPayloadLimit) {
		s.call(rt.method, pathOf(rt)+"?no_such=1", "", with(s.admin))
		// Each from an address of its own: guessing tokens is slowed.
		s.call(rt.method, pathOf(rt), "", with("lsr_wrong"), func(r *http.Request) {
			r.RemoteAddr = fmt.Sprintf("127.0.1.%d:1", i)
		})
		s.call(rt.method, pathOf(rt), "", with(s.admin), func(r *http.Request) { r.Host = "evil.example" })
		if rt.handle.in != nil {
			s.call(rt.method, pathOf(rt), strings.Repeat(" ", int(rt.handle.limit)+1), with(s.admin))
		}
	}
	s.polls, s.streams = quota.New(0), quota.New(0)
	s.call("POST", scheduling+"/leases/request", `{"worker_id":"w","wait_ms":1}`, with(s.admin))
	s.call("POST", scheduling+"/leases/cancelled", `{"worker_id":"w","wait_ms":1}`, with(s.admin))
	s.call("POST", scheduling+"/leases/turn", `{"worker_id":"w","request":{"wait_ms":1}}`, with(s.admin))
	s.call("GET", scheduling+"/jobs/"+nowhere+"?wait_ms=1", "", with(s.admin))
	s.call("GET", scheduling+"/jobs/"+nowhere+"/output?wait_ms=1", "", with(s.admin))
	s.call("GET", scheduling+"/events", "", with(s.admin))
	for i := s.tokens.Len(); i < maxTokens; i++ {
		s.tokens.Put(scheduler.Token{Hash: [32]byte{1, byte(i), byte(i >> 8)}})
	}
	s.call("POST", "/api/admin/tokens", `{"role":"viewer"}`, with(s.admin))
}

// bodies are requests that reach the scheduler.
var bodies = map[string]string{
	"/jobs": `{"type":"x"}`, "/jobs/batch": `{"jobs":[{"type":"x"}]}`, "/leases/request": `{"worker_id":"w"}`,
	"/leases/heartbeat":            `{"worker_id":"w","lease_ids":["x"]}`,
	"/leases/cancelled":            `{"worker_id":"w"}`,
	"/leases/turn":                 `{"worker_id":"w","heartbeat":["x"]}`,
	"/jobs/{job_id}/answer":        `{"question_id":"x","answer":"yes"}`,
	"/jobs/{job_id}/messages":      `{"text":"hello"}`,
	"/leases/complete":             `{"worker_id":"w","leases":[{"lease_id":"x","status":"failed"}]}`,
	"/leases/{lease_id}/heartbeat": `{"worker_id":"w"}`,
	"/leases/{lease_id}/journal":   `{"worker_id":"w","entries":[{"key":"k"}]}`,
	"/leases/{lease_id}/complete":  `{"worker_id":"w","status":"failed"}`,
	"/leases/{lease_id}/output":    `{"worker_id":"w","chunks":[]}`,
	"/leases/{lease_id}/release":   `{"worker_id":"w"}`, "/drain": `{"draining":true}`,
	"/log-level":             `{"level":"info"}`,
	"/tokens":                `{"role":"viewer"}`,
	"/jobs/{jobId}":          definition("nightly", tenantA),
	"/manifests":             `{"moduleId":"m","version":"1","tenantId":"` + tenantA + `","jobs":[]}`,
	"/handlers/{handlerId}":  `{"schema":{}}`,
	"/recovery/jobs/resume":  `{"jobId":"` + nowhere + `"}`,
	"/jobs/{jobId}/backfill": `{"from":"2026-01-01T00:00:00Z","to":"2026-01-01T00:00:00Z"}`,
}

// walkPostgres provokes what only a server on PostgreSQL answers.
func walkPostgres(t *testing.T, c *contract) {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Config{URL: pool.Database(t)})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	s := startOn(t, store)
	s.contract = c
	refused(t, s.call("GET", administration+"/backup", "", with(s.admin)), 409, lessor.CodeConflict)
}

// walkFaults calls every route of a server whose scheduler is broken, and of one that is not up yet.
func walkFaults(t *testing.T, c *contract) {
	t.Helper()
	s := start(t)
	s.contract = c
	broken := *s
	broken.API = New(Config{Tokens: s.tokens, Telemetry: s.telemetry, Log: s.API.log, ListenAddr: testListen})
	early := *s
	early.API = New(Config{
		Scheduler: s.scheduler, Tokens: token.NewBook(s.scheduler.Tokens), Telemetry: s.telemetry,
		ListenAddr: testListen,
	})
	for _, rt := range routes(defaultPayloadLimit) {
		short := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(rt.path, scheduling), administration),
			schedules)
		body := ""
		if rt.method != http.MethodGet {
			body = bodies[short]
		}
		w := broken.call(rt.method, pathOf(rt), body, with(s.admin))
		if w.Code == http.StatusInternalServerError {
			refused(t, w, 500, lessor.CodeInternal)
		}
		early.call(rt.method, pathOf(rt), body, with(s.admin))
	}
}

func TestStoppedSchedulerIsUnavailable(t *testing.T) {
	s := start(t)
	s.stop()
	for _, w := range []struct{ method, path, body string }{
		{"POST", "/jobs", `{"type":"x"}`},
		{"POST", "/leases/request", `{"worker_id":"w"}`},
		{"GET", "/status", ""},
	} {
		answer := s.call(w.method, scheduling+w.path, w.body)
		refused(t, answer, 503, lessor.CodeUnavailable)
		if answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: 503 without Retry-After", w.method, w.path)
		}
	}
	refused(t, s.call("GET", "/health/ready", ""), 503, lessor.CodeUnavailable)
	if w := s.call("GET", "/health/live", ""); w.Code != 200 {
		t.Errorf("the process lives, and says %d", w.Code)
	}
}
