package httpapi

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"
)

func walkDiagnostics(s *server) {
	const level, profiles = administration + "/log-level", administration + "/pprof/"
	admin := with(s.admin)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", level, "", 200},
		{"PUT", level, `{"level":"warn"}`, 200},
		{"PUT", level, `{"level":"loud"}`, 422},
		{"PUT", level, `{"level":"info+1"}`, 422},
		{"GET", profiles + "heap", "", 200},
		{"GET", profiles + "goroutine", "", 200},
		{"GET", profiles + "cmdline", "", 422},
		{"GET", profiles + "heap?seconds=61", "", 422},
		{"GET", profiles + "heap?debug=1", "", 400},
		{"GET", profiles + "trace?seconds=1", "", 200},
	} {
		if w := s.call(c.method, c.path, c.body, admin); w.Code != c.status {
			s.t.Errorf("%s %s %s: %d, want %d\n%s", c.method, c.path, c.body, w.Code, c.status, w.Body)
		}
	}
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		s.t.Fatal(err)
	}
	if w := s.call("GET", profiles+"profile?seconds=1", "", admin); w.Code != http.StatusConflict {
		s.t.Errorf("a second CPU profile: %d, want 409", w.Code)
	}
	pprof.StopCPUProfile()
}

func TestLogLevelChangesWhileItRuns(t *testing.T) {
	s := start(t)
	var out bytes.Buffer
	s.level.Set(slog.LevelInfo)
	s.API.log = slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: s.level}))
	s.call("GET", "/api/system/scheduler/jobs/"+nowhere, "")
	if out.Len() > 0 {
		t.Fatalf("logged at info: %s", &out)
	}
	admin := with(s.admin)
	s.call("PUT", administration+"/log-level", `{"level":"debug"}`, admin)
	if got := decoded(t, s.call("GET", administration+"/log-level", "", admin)); got["level"] != "debug" {
		t.Errorf("the level is %v, want debug", got)
	}
	out.Reset()
	s.call("GET", "/api/system/scheduler/jobs/"+nowhere, "",
		header("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
	for _, want := range []string{
		`"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"`, `"job_id":"` + nowhere + `"`, `"status":404`,
		`"route":"/api/system/scheduler/jobs/{job_id}"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log of a request lacks %s: %s", want, &out)
		}
	}
}

func TestProfilesAreForAdminsOnly(t *testing.T) {
	s := start(t)
	for role, status := range map[string]int{"viewer": 403, "worker": 403, "operator": 403, "admin": 200} {
		if w := s.call("GET", administration+"/pprof/goroutine", "", with(s.issue(role, ""))); w.Code != status {
			t.Errorf("as %s: %d, want %d", role, w.Code, status)
		}
	}
	if w := s.call("GET", administration+"/pprof/goroutine", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d, want 401", w.Code)
	}
	//nolint:forbidigo // to see that it is empty
	if _, pattern := http.DefaultServeMux.Handler(request("GET", "/debug/pprof/", "")); pattern != "" {
		t.Errorf("the default mux has %s: somebody imports net/http/pprof", pattern)
	}
}
