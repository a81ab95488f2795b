package dashboard

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/internal/httpapi"
	"lessor/internal/recovery"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
	"lessor/internal/store/sqlite"
	"lessor/internal/telemetry"
	"lessor/internal/token"
)

const (
	tenantA = "018f0000-0000-7000-8000-00000000000a"
	tenantB = "018f0000-0000-7000-8000-00000000000b"
)

var tester = scheduler.Caller{Actor: "test"}

// server is a dashboard behind the API, over a real scheduler and store, on a port of its own.
type server struct {
	*Dashboard
	t         testing.TB
	url       string
	admin     string // an admin token
	workspace *sentinel.Workspace
	dir       string
	stop      func()
	sample    func() (lessor.BusyInputs, error) // measures the host; nil = the busy rating is set
}

func start(t testing.TB, edit ...func(*httpapi.Config)) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	s.boot("127.0.0.1:0", edit...)
	t.Cleanup(func() { s.stop() })
	s.admin = s.issue("admin", "")
	return s
}

// boot starts the server, also again after stop.
func (s *server) boot(addr string, edit ...func(*httpapi.Config)) {
	t := s.t
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(s.dir, "lessor.db"), Synchronous: "OFF"})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	quiet := new(0)
	if s.sample != nil {
		quiet = nil
	}
	sched := scheduler.New(store, scheduler.Config{
		TTL: time.Minute, Sweep: time.Second, TotalUnits: 100, ReserveUnits: 5, Percent: rules.DefaultPercent,
		Busy: quiet, Sample: s.sample, BusyPoints: rules.DefaultBusyPoints(), TenantCap: 25, MaxInterruptions: 20,
		MaxMessages: 1000, Output: rules.OutputKeep{Head: 64 << 10, Tail: 1 << 20},
		Brake: rules.BrakeConfig{SharePercent: 30, Min: 10, Rate: 200}, Circuit: scheduler.CircuitConfig{
			Failures: 5, Cooldown: 5 * time.Minute,
		},
		Jobs: rules.SubmitConfig{
			MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: 5 * time.Minute, PayloadLimit: 256 << 10,
		},
		Observe: func(st scheduler.Stats) { s.Observe(st) },
	})
	workspace, err := sentinel.Open(filepath.Join(s.dir, "workspace"))
	if err != nil {
		t.Fatalf("open workspace: %v", err)
	}
	s.workspace = workspace
	monitor := recovery.New(recovery.Config{
		Scheduler: sched, Workspace: workspace, Node: "node-1",
		Scan: time.Minute, StaleAfter: 2 * time.Minute, DeadAfter: 10 * time.Minute, Limit: 30 * time.Minute,
		Watch: 5 * time.Minute, Poll: 10 * time.Second, ResumedWithin: time.Minute, CleanupDelay: 30 * time.Second,
		Keep: time.Hour,
	})
	book := token.NewBook(sched.Tokens)
	s.Dashboard = New(Config{Scheduler: sched, Tokens: book, Recovery: monitor, Version: "test"})
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + ln.Addr().String()
	cfg := httpapi.Config{
		Scheduler: sched, Tokens: book, Telemetry: telemetry.New(), Recovery: monitor, ListenAddr: ln.Addr().String(),
		Pages: s.Serve,
	}
	for _, e := range edit {
		e(&cfg)
	}
	api := httpapi.New(cfg)
	work, stopWork := context.WithCancel(context.Background())
	web, stopWeb := context.WithCancel(context.Background())
	var running, serving sync.WaitGroup
	running.Go(func() {
		if err := sched.Run(work); err != nil {
			t.Errorf("the scheduler ended with %v", err)
		}
	})
	running.Go(func() { s.Run(work) })
	running.Go(func() { monitor.Run(work) })
	serving.Go(func() { _ = httpapi.Serve(web, ln, api) })
	s.stop = func() {
		stopWeb()
		serving.Wait()
		stopWork()
		running.Wait()
		_ = workspace.Close()
		_ = store.Close()
	}
	for deadline := time.Now().Add(60 * time.Second); sched.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the scheduler is not ready: %v", sched.Ready())
		}
	}
	if err := book.Refresh(t.Context()); err != nil {
		t.Fatalf("load tokens: %v", err)
	}
}

// issue makes a token.
func (s *server) issue(role, tenant string) string {
	s.t.Helper()
	name := "the " + role
	ask := token.Ask{Role: &role, Name: &name}
	if tenant != "" {
		ask.TenantID = &tenant
	}
	made, secret, err := token.Issue(ask, lessor.At(time.Now()))
	if err != nil {
		s.t.Fatalf("issue: %v", err)
	}
	if err := s.scheduler.SaveToken(s.t.Context(), tester, made); err != nil {
		s.t.Fatalf("save token: %v", err)
	}
	s.tokens.Put(made)
	return secret
}

// visitor is a browser without JavaScript.
type visitor struct {
	*server
	http.Client
}

func (s *server) visitor() *visitor {
	jar, _ := cookiejar.New(nil)
	return &visitor{s, http.Client{Jar: jar, Timeout: 10 * time.Second}}
}

// as logs in.
func (s *server) as(secret string) *visitor {
	v := s.visitor()
	if status, body := v.post("/login", "token", secret); status != http.StatusOK {
		s.t.Fatalf("login: %d %s", status, body)
	}
	return v
}

func (v *visitor) get(path string) (int, string) {
	v.t.Helper()
	return v.read(v.Get(v.url + path))
}

func (v *visitor) post(path string, pairs ...string) (int, string) {
	v.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return v.read(v.PostForm(v.url+path, form))
}

func (v *visitor) read(r *http.Response, err error) (int, string) {
	v.t.Helper()
	if err != nil {
		v.t.Fatalf("request: %v", err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		v.t.Fatalf("read: %v", err)
	}
	return r.StatusCode, string(body)
}

// submit adds a job.
func (s *server) submit(sub lessor.Submission) lessor.Job {
	s.t.Helper()
	done, err := s.scheduler.Submit(s.t.Context(), tester, sub)
	if err != nil {
		s.t.Fatalf("submit: %v", err)
	}
	return done.Job
}

// lease takes the next job of a type.
func (s *server) lease(worker, typ string) lessor.Grant {
	s.t.Helper()
	caller := tester
	caller.Agent = "test-agent/1.0"
	grants, denial, err := s.scheduler.Request(s.t.Context(), caller,
		lessor.LeaseRequest{WorkerID: &worker, Types: []string{typ}})
	if err != nil || denial != nil {
		s.t.Fatalf("request: %v %v", denial, err)
	}
	return grants[0]
}

func (s *server) beat(g lessor.Grant, progress float64, message string) {
	s.t.Helper()
	beat := lessor.Heartbeat{WorkerID: &g.Lease.WorkerID, Progress: &progress, Message: &message}
	if _, err := s.scheduler.Heartbeat(s.t.Context(), tester, g.Lease.ID, beat); err != nil {
		s.t.Fatalf("heartbeat: %v", err)
	}
}

func (s *server) print(g lessor.Grant, offset int64, text string) {
	s.t.Helper()
	_, err := s.scheduler.Print(s.t.Context(), tester, g.Lease.ID, lessor.OutputReport{
		WorkerID: &g.Lease.WorkerID,
		Chunks:   []lessor.OutputChunk{{Stream: new(lessor.Stdout), Offset: &offset, Data: []byte(text)}},
	})
	if err != nil {
		s.t.Fatalf("print: %v", err)
	}
}

func (s *server) append(g lessor.Grant, e lessor.JournalAsk) {
	s.t.Helper()
	a := lessor.JournalAppend{WorkerID: &g.Lease.WorkerID, Entries: []lessor.JournalAsk{e}}
	if _, err := s.scheduler.Append(s.t.Context(), tester, g.Lease.ID, a); err != nil {
		s.t.Fatalf("append: %v", err)
	}
}

func (s *server) finish(g lessor.Grant, status, what string) {
	s.t.Helper()
	c := lessor.Completion{WorkerID: &g.Lease.WorkerID, Status: &status}
	if status == "failed" {
		c.Error = &what
	} else {
		c.Result = []byte(what)
	}
	if err := s.scheduler.Complete(s.t.Context(), tester, g.Lease.ID, c); err != nil {
		s.t.Fatalf("complete: %v", err)
	}
}

// define adds a definition with an interval in seconds.
func (s *server) define(id, handler string, seconds int64) {
	s.t.Helper()
	_, _, err := s.scheduler.PutDefinition(s.t.Context(), tester, id, lessor.Envelope{
		JobID: &id, TenantID: new(tenantA), HandlerID: &handler, LockKey: new("lock-" + id),
		Payload:  []byte(`{"from":"schedule"}`),
		Schedule: &lessor.ScheduleAsk{Type: new(lessor.ScheduleInterval), Seconds: &seconds},
	})
	if err != nil {
		s.t.Fatalf("define: %v", err)
	}
}

// breakCircuit adds a definition that failed so often that its circuit is open.
func (s *server) breakCircuit(id string) {
	s.t.Helper()
	s.define(id, id+".run", 60)
	for range 5 {
		job, err := s.scheduler.Trigger(s.t.Context(), tester, id, nil)
		if err != nil {
			s.t.Fatalf("trigger: %v", err)
		}
		s.finish(s.lease("w", id+".run"), "failed", "broken")
		if _, err := s.scheduler.Cancel(s.t.Context(), tester, job, true); err != nil {
			s.t.Fatalf("cancel: %v", err)
		}
	}
}

// world is a server with an example of everything.
type world struct {
	*server
	queued, running, failed, done lessor.Job
	held                          lessor.Grant
}

func (s *server) world() world {
	s.t.Helper()
	w := world{server: s}
	s.breakCircuit("warehouse.synchronise.prices")
	w.failed = s.submit(lessor.Submission{
		Type: new("mail.send"), TenantID: new(tenantB), MaxAttempts: new(int64(1)), Tags: []string{"night"},
	})
	s.finish(s.lease("mailer-1", "mail.send"), "failed", "connection refused by smtp.example.org")
	w.done = s.submit(lessor.Submission{
		Type: new("report.build"), TenantID: new(tenantA), Payload: []byte(`{"month":"2026-10","pages":12}`),
		Tags: []string{"monthly", "pdf"},
	})
	g := s.lease("builder-1", "report.build")
	s.beat(g, 0.9, "almost")
	s.finish(g, "completed", `{"url":"https://example.org/r.pdf"}`)
	w.running = s.submit(lessor.Submission{
		Type: new("video.encode"), TenantID: new(tenantA), RequestedUnits: new(int64(4)), Priority: new("high"),
	})
	w.held = s.lease("encoder-7.video.eu-central-1.example.org", "video.encode")
	time.Sleep(2 * time.Millisecond) // instants are milliseconds: a beat is to be later than its grant
	s.beat(w.held, 0.42, "frame 4200 of 10000")
	s.print(w.held, 0, "\x1b[1mbold\x1b[0m \x1b[30m0\x1b[31m1\x1b[32m2"+
		"\x1b[33m3\x1b[34m4\x1b[35m5\x1b[36m6\x1b[37m7\x1b[0m\n")
	for range 3 {
		w.queued = s.submit(lessor.Submission{
			Type: new("thumbnail.make"), TenantID: new(tenantB), LockKey: new("thumbnails"),
		})
	}
	s.define("nightly-invoices", "report.build", 3600)
	if _, err := s.scheduler.Trigger(s.t.Context(), tester, "nightly-invoices", nil); err != nil {
		s.t.Fatalf("trigger: %v", err)
	}
	ask := lessor.TenantAsk{Weight: lessor.SetTo(int64(3)), MaxConcurrency: lessor.SetTo(int64(20))}
	if _, err := s.scheduler.SetTenant(s.t.Context(), tester, tenant(tenantA), ask); err != nil {
		s.t.Fatalf("set tenant: %v", err)
	}
	alert := lessor.Alert{
		Kind: lessor.AlertNoWorker, Subject: "nightly-invoices", Message: "no worker asks for thumbnail.make",
	}
	if err := s.scheduler.Raise(s.t.Context(), alert); err != nil {
		s.t.Fatalf("raise: %v", err)
	}
	return w
}

func tenant(s string) lessor.TenantID {
	u, err := lessor.ParseUUID(s)
	if err != nil {
		panic(err)
	}
	return lessor.TenantID{UUID: u}
}

// paths are all pages of a world.
func (w world) paths() []string {
	return []string{
		"/", "/jobs", "/jobs/" + w.running.ID.String(), "/jobs/" + w.failed.ID.String(), "/leases", "/workers",
		"/schedules", "/schedules/nightly-invoices",
		"/runs", "/tenants", "/recovery", "/audit", "/jobs/bulk?action=cancel&state=queued", "/login",
		"/drain", "/leases/" + w.held.Lease.ID.String() + "/revoke?job=" + w.running.ID.String(),
	}
}

// has fails unless the page shows each of these.
func has(t *testing.T, page string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q:\n%s", want, page)
		}
	}
}
