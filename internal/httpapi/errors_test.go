package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/token"
)

// fails runs one request whose handler ends with err.
func fails(t *testing.T, s *server, run func(*call) error, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	table := []route{{method: "GET", path: "/broken", scope: token.Public, handle: plain(run)}}
	broken := New(Config{
		Scheduler: s.scheduler, Tokens: s.tokens, Telemetry: s.telemetry, Log: s.API.log,
		ListenAddr: testListen,
	})
	broken.mux = newMux(table)
	r := request("GET", "/broken", "")
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	broken.ServeHTTP(w, r)
	return w
}

func TestEveryCodeHasItsStatus(t *testing.T) {
	s := start(t)
	for code, status := range map[lessor.Code]int{
		"invalid_request": 400, "invalid_value": 422, "unauthenticated": 401, "forbidden": 403, "worker_mismatch": 403,
		"lease_not_found": 404, "job_not_found": 404, "token_not_found": 404, "definition_not_found": 404,
		"alert_not_found": 404, "run_not_found": 404,
		"error_not_found": 404, "tenant_not_found": 404, "route_not_found": 404, "method_not_allowed": 405,
		"conflict": 409, "precondition_failed": 412, "payload_too_large": 413, "rate_limited": 429, "unavailable": 503,
		"internal": 500,
	} {
		if statuses[code] != status {
			t.Errorf("%s has status %d, want %d", code, statuses[code], status)
		}
		w := fails(t, s, func(*call) error {
			return fmt.Errorf("wrapped: %w",
				&lessor.Error{Code: code, Detail: "why", RetryAfter: 1500 * time.Millisecond})
		})
		p := refused(t, w, status, code)
		if p["type"] != "about:blank" || p["title"] != http.StatusText(status) ||
			fmt.Sprint(p["status"]) != fmt.Sprint(status) || len(p["trace_id"].(string)) != 32 {
			t.Errorf("%s: %v", code, p)
		}
		if code != "internal" && p["detail"] != "why" {
			t.Errorf("%s: detail %q", code, p["detail"])
		}
		retry := ""
		if status == 429 || status == 503 {
			retry = "2"
		}
		if got := w.Header().Get("Retry-After"); got != retry {
			t.Errorf("%s: Retry-After %q, want %q", code, got, retry)
		}
	}
	if len(statuses) != 21 {
		t.Errorf("%d codes have a status; this test knows 21", len(statuses))
	}
}

func TestProblemShowsWhatIsKnown(t *testing.T) {
	s := start(t)
	w := fails(t, s, func(*call) error {
		return &lessor.Error{
			Code: lessor.CodeUnavailable, Detail: "d", EndedReason: "expired", OutcomeUnknown: true,
			Fields: []lessor.FieldError{{Field: "jobs[3].priority", Message: "m"}},
		}
	})
	p := refused(t, w, 503, lessor.CodeUnavailable)
	f := p["errors"].([]any)[0].(map[string]any)
	if p["ended_reason"] != "expired" || p["outcome"] != "unknown" || f["field"] != "jobs[3].priority" ||
		f["message"] != "m" {
		t.Errorf("problem is %v", p)
	}
	p = refused(t, fails(t, s, func(*call) error { return lessor.ErrJobNotFound }), 404, lessor.CodeJobNotFound)
	for _, name := range []string{"errors", "ended_reason", "outcome"} {
		if _, ok := p[name]; ok {
			t.Errorf("%s is there though nothing is known of it: %v", name, p)
		}
	}
}

func TestFaultsAreLoggedOnceAndNotShown(t *testing.T) {
	for name, run := range map[string]func(*call) error{
		"fault":        func(*call) error { return errors.New("secret: disk /var/x") },
		"panic":        func(*call) error { panic("secret: index out of range") },
		"unknown code": func(*call) error { return &lessor.Error{Code: "secret"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			w := fails(t, s, run)
			p := refused(t, w, 500, lessor.CodeInternal)
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("the answer tells the fault: %s", w.Body)
			}
			log := s.log.String()
			if strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "secret") ||
				!strings.Contains(log, p["trace_id"].(string)) {
				t.Errorf("the log must have the fault once, with its trace id; it has:\n%s", log)
			}
			faults := fmt.Sprintf(`lessor_faults_total{place="http"} %d`, strings.Count(name, "panic"))
			if w := s.call("GET", "/metrics", ""); !strings.Contains(w.Body.String(), faults) {
				t.Errorf("the metrics lack %s", faults)
			}
			if w := s.call("GET", "/health/live", ""); w.Code != 200 {
				t.Errorf("afterwards the server answers %d", w.Code)
			}
		})
	}
}

func TestRefusalsAreNotLogged(t *testing.T) {
	s := start(t)
	s.call("GET", scheduling+"/jobs/"+nowhere, "")
	s.call("POST", scheduling+"/jobs", "{")
	s.call("GET", "/nowhere", "")
	if log := s.log.String(); log != "" {
		t.Errorf("the log has %s", log)
	}
}

func TestClientsThatLeaveAreNoFaults(t *testing.T) {
	s := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	isCut(t, "client that left", func() {
		fails(t, s, func(c *call) error { return fmt.Errorf("wait: %w", c.r.Context().Err()) }, func(r *http.Request) {
			*r = *r.WithContext(ctx)
		})
	})
	if log := s.log.String(); log != "" {
		t.Errorf("log %q, want none", log)
	}
	// The same error while the client is there is one.
	w := fails(t, s, func(*call) error { return context.Canceled })
	refused(t, w, 500, lessor.CodeInternal)
}

// isCut fails the test if a request does not end with its connection cut.
func isCut(t *testing.T, name string, request func()) {
	t.Helper()
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("%s: ended with %v, want http.ErrAbortHandler", name, err)
		}
	}()
	request()
}

// Half an answer must not look like a whole one: the connection is cut.
func TestFaultAfterTheAnswerBeganCutsTheConnection(t *testing.T) {
	s := start(t)
	for name, run := range map[string]func(*call) error{
		"fault": func(c *call) error { _, _ = c.w.Write([]byte("half")); return errors.New("disk") },
		"panic": func(c *call) error { _, _ = c.w.Write([]byte("half")); panic("oops") },
	} {
		isCut(t, name, func() { fails(t, s, run) })
	}
	if n := strings.Count(s.log.String(), "level=ERROR"); n != 2 {
		t.Errorf("%d lines in the log, want one each", n)
	}
}

func TestUnknownRoutesAndMethodsAreProblems(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/", 404, ""},
		{"GET", "/api", 404, ""},
		{"GET", scheduling, 404, ""},
		{"GET", scheduling + "/jobs/", 404, ""},
		{"GET", scheduling + "//jobs", 404, ""},
		{"GET", scheduling + "/./jobs", 404, ""},
		{"GET", scheduling + "/leases/../jobs", 404, ""},
		{"GET", "/API/system/scheduler/jobs", 404, ""},
		{"GET", scheduling + "/jobs/" + nowhere + "/nope", 404, ""},
		{"DELETE", scheduling + "/jobs", 405, "GET, HEAD, POST"},
		{"PATCH", scheduling + "/jobs/" + nowhere, 405, "GET, HEAD"},
		{"GET", scheduling + "/leases/request", 405, "POST"},
		{"OPTIONS", scheduling + "/capacity", 405, "GET, HEAD, PUT"},
		{"HEAD", scheduling + "/events", 405, "GET"},
		{"BREW", "/health/live", 405, "GET, HEAD"},
	} {
		w := s.call(tt.method, tt.path, "")
		code := lessor.CodeRouteNotFound
		if tt.status == 405 {
			code = lessor.CodeMethodNotAllowed
		}
		refused(t, w, tt.status, code)
		if got := w.Header().Get("Allow"); got != tt.allow {
			t.Errorf("%s %s: Allow %q, want %q", tt.method, tt.path, got, tt.allow)
		}
	}
	if w := s.call("HEAD", scheduling+"/status", ""); w.Code != 200 {
		t.Errorf("HEAD of a GET route: %d", w.Code)
	}
}
