package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/internal/recovery"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
	"lessor/internal/store/sqlite"
	"lessor/internal/telemetry"
	"lessor/internal/token"
)

const (
	testListen = "127.0.0.1:5377"
	nowhere    = "018f0000-0000-7000-8000-000000000000" // the id of nothing
	tenantA    = "018f0000-0000-7000-8000-00000000000a"
	tenantB    = "018f0000-0000-7000-8000-00000000000b"
)

// server is an API over a real scheduler and store. Every answer that passes through it is checked against the OpenAPI
// document.
type server struct {
	*API
	t         *testing.T
	admin     string // an admin token
	log       *logged
	contract  *contract
	workspace *sentinel.Workspace
	stop      func() // stops the scheduler; to be called once
}

// logged is the server's log.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func testScheduler() scheduler.Config {
	quiet := 0
	return scheduler.Config{
		TTL: time.Minute, Sweep: time.Second, TotalUnits: 100, ReserveUnits: 5, Percent: rules.DefaultPercent,
		Busy: &quiet, BusyPoints: rules.DefaultBusyPoints(), TenantCap: 25, MaxInterruptions: 20, MaxMessages: 1000,
		Output:  rules.OutputKeep{Head: 64 << 10, Tail: 1 << 20},
		Brake:   rules.BrakeConfig{SharePercent: 30, Min: 10, Rate: 200},
		Circuit: scheduler.CircuitConfig{Failures: 5, Cooldown: 5 * time.Minute},
		Jobs: rules.SubmitConfig{
			MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: 5 * time.Minute,
			PayloadLimit: 256 << 10,
		},
	}
}

// start runs a server until the test ends.
func start(t *testing.T, edit ...func(*Config)) *server {
	t.Helper()
	store, err := sqlite.Open(t.Context(),
		sqlite.Config{Path: filepath.Join(t.TempDir(), "lessor.db"), Synchronous: "OFF"})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	return startOn(t, store, edit...)
}

// startOn starts a server on a store, which it closes.
func startOn(t *testing.T, store scheduler.Store, edit ...func(*Config)) *server {
	t.Helper()
	sched := scheduler.New(store, testScheduler())
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- sched.Run(ctx) }()
	s := &server{t: t, log: &logged{}, contract: theContract}
	s.stop = func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("the scheduler ended with %v", err)
		}
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
		s.stop = func() {}
	}
	t.Cleanup(func() { s.stop() })
	for deadline := time.Now().Add(60 * time.Second); sched.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the scheduler is not ready: %v", sched.Ready())
		}
	}
	cfg := Config{
		Scheduler: sched, Tokens: token.NewBook(sched.Tokens), Telemetry: telemetry.New(), ListenAddr: testListen,
		Recovery: s.watch(ctx, sched),
		Log:      slog.New(slog.NewTextHandler(s.log, nil)), Version: "test",
	}
	for _, e := range edit {
		e(&cfg)
	}
	s.API = New(cfg)
	if err := cfg.Tokens.Refresh(t.Context()); err != nil {
		t.Fatalf("load tokens: %v", err)
	}
	s.admin = s.issue("admin", "")
	return s
}

// watch runs a monitor over a workspace of its own, until ctx is done.
func (s *server) watch(ctx context.Context, sched *scheduler.Scheduler) *recovery.Monitor {
	s.t.Helper()
	ws, err := sentinel.Open(s.t.TempDir())
	if err != nil {
		s.t.Fatalf("open workspace: %v", err)
	}
	s.workspace = ws
	m := recovery.New(recovery.Config{
		Scheduler: sched, Workspace: ws, Node: "node-1", Scan: time.Minute, StaleAfter: 2 * time.Minute,
		DeadAfter: 10 * time.Minute,
		Limit:     30 * time.Minute, Watch: 5 * time.Minute, Poll: 10 * time.Second, ResumedWithin: time.Minute,
		CleanupDelay: 30 * time.Second, Keep: time.Hour,
	})
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	stop := s.stop
	s.stop = func() {
		stop()
		running.Wait()
	}
	s.t.Cleanup(func() { _ = ws.Close() })
	return m
}

// issue makes a token.
func (s *server) issue(role, tenant string) string {
	s.t.Helper()
	ask := token.Ask{Role: &role}
	if tenant != "" {
		ask.TenantID = &tenant
	}
	t, secret, err := token.Issue(ask, lessor.At(time.Now()))
	if err != nil {
		s.t.Fatalf("issue: %v", err)
	}
	if err := s.scheduler.SaveToken(s.t.Context(), scheduler.Caller{Actor: "test"}, t); err != nil {
		s.t.Fatalf("save token: %v", err)
	}
	s.tokens.Put(t)
	return secret
}

// request is a call from this machine.
func request(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, "http://"+testListen+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:40000"
	return r
}

// with adds a token.
func with(secret string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
}

// header sets a header.
func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// call sends a request and checks its answer against the contract.
func (s *server) call(method, path, body string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	s.t.Helper()
	r := request(method, path, body)
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	s.contract.check(s.t, r, w)
	return w
}

// api sends a request to the scheduler's part of the API as admin, and wants this status.
func (s *server) api(method, path, body string, want int) map[string]any {
	s.t.Helper()
	w := s.call(method, scheduling+path, body, with(s.admin))
	if w.Code != want {
		s.t.Fatalf("%s %s: %d %s; want %d", method, path, w.Code, w.Body, want)
	}
	return decoded(s.t, w)
}

// schedules sends a request below /api/kernel as admin and expects this status.
func (s *server) schedules(method, path, body string, want int) map[string]any {
	s.t.Helper()
	w := s.call(method, schedules+path, body, with(s.admin))
	if w.Code != want {
		s.t.Fatalf("%s %s: %d %s; want %d", method, path, w.Code, w.Body, want)
	}
	return decoded(s.t, w)
}

// refused fails unless the answer is a problem with this status and code.
func refused(t *testing.T, w *httptest.ResponseRecorder, status int, code lessor.Code) map[string]any {
	t.Helper()
	p := decoded(t, w)
	if w.Code != status || p["code"] != string(code) || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %s %s; want %d %s", w.Code, w.Header().Get("Content-Type"), w.Body, status, code)
	}
	return p
}

func decoded(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var v map[string]any
	if w.Body.Len() == 0 {
		return v
	}
	dec := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	dec.UseNumber() // payloads may have numbers that are no float64
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("answer is not a JSON object: %v: %s", err, w.Body)
	}
	return v
}

// readAll reads a body to its end.
func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return string(b)
}
