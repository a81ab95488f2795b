package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/pgtest"
)

// planted are secrets by their names. Each is a word that occurs nowhere by chance.
var planted = map[string]string{
	"password of the store":      "plantedstorepassword",
	"wrong token":                "lsr_plantedwrongtokenplantedwrongtokenplantedw",
	"password of the webhook":    "plantedwebhookpassword",
	"token of the webhook":       "plantedwebhooktoken",
	"secret of the webhook":      "plantedwebhooksecret",
	"password of the collector":  "plantedcollectorpassword",
	"environment of the worker":  "plantedenvironment",
	"password in libpq's form":   "plantedlibpqpassword",
	"password of another server": "plantedserverpassword",
}

// shown collects all that a server and its programs show, by where.
type shown struct {
	t       *testing.T
	secrets map[string]string
	mu      sync.Mutex
	places  map[string]string
}

func (o *shown) add(place, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.places[place] += text
}

// TestSecretsShowNowhere plants secrets in everything that has some, uses every route, page and command, on the good
// and on the bad path and at the level debug, and looks for them in all that came out: answers, pages, metrics, audit,
// the stream of events, logs, what commands print, alerts that were sent, files of the workspace, and the database.
func TestSecretsShowNowhere(t *testing.T) {
	out := &shown{t: t, secrets: maps.Clone(planted), places: map[string]string{}}
	db := database(t, pgtest.Options{})
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Header.Del("Authorization") // the password is for the receiver
		out.add("webhook", fmt.Sprint(r.Header, string(body)))
		w.WriteHeader(http.StatusInternalServerError) // the failure is logged
	}))
	t.Cleanup(hook.Close)
	s, link := startWithSecrets(t, out, db, strings.TrimPrefix(hook.URL, "http://"))
	made := s.makeTokens(out)
	following := s.follow(out)
	job := s.failAJob(out, made["worker"])
	s.callEverything(out, job)
	s.visitPages(out, <-link, job)
	s.runCommands(out, job)
	s.closeDown(out, db)
	following.Wait()
	out.check()
}

// startWithSecrets starts a server with every setting that can be a secret. link gets the code of the one-time link.
func startWithSecrets(t *testing.T, out *shown, db *pgtest.Server, hook string) (s *server, link chan string) {
	t.Helper()
	store := strings.Replace(db.URL("postgres"), "postgres@", "postgres:"+planted["password of the store"]+"@", 1)
	s = &server{t: t, data: t.TempDir(), env: []string{
		"LESSOR_STORE=" + store,
		"LESSOR_ALERTS_WEBHOOK=http://hook:" + planted["password of the webhook"] + "@" + hook + "/?token=" +
			planted["token of the webhook"],
		"LESSOR_ALERTS_WEBHOOK_SECRET=" + planted["secret of the webhook"], "LESSOR_ALERTS_ALLOW_HOSTS=127.0.0.1",
		"LESSOR_ALERTS_JOB_FAILED=true", "LESSOR_TELEMETRY_LOG_LEVEL=debug",
		"LESSOR_TELEMETRY_OTLP_ENDPOINT=http://otlp:" + planted["password of the collector"] + "@127.0.0.1:9/",
	}}
	s.addr = "127.0.0.1:0"
	link = make(chan string, 1)
	s.onLine = func(line string) {
		if _, code, ok := strings.Cut(line, "/login?code="); ok {
			link <- code // for the person who starts the server
			return
		}
		out.add("greeting", line+"\n")
		if strings.HasPrefix(line, "first job") {
			close(link)
		}
	}
	s.start()
	t.Cleanup(s.checkLog)
	t.Cleanup(s.kill)
	secret, err := os.ReadFile(filepath.Join(s.data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	out.secrets["admin token"] = strings.TrimSpace(string(secret))
	return s, link
}

// makeTokens makes tokens of two roles. The answer that shows them is the one place where they may be.
func (s *server) makeTokens(out *shown) map[string]string {
	s.t.Helper()
	made := map[string]string{}
	for _, role := range []string{"worker", "operator"} {
		var answer struct{ Token string }
		_, body := s.send("POST", "/api/admin/tokens", `{"role":"`+role+`","name":"`+role+`"}`,
			out.secrets["admin token"])
		if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Token == "" {
			s.t.Fatalf("make a token: %v %s", err, body)
		}
		made[role] = answer.Token
		out.secrets[role+" token"] = answer.Token
	}
	return made
}

// follow collects the stream of events until the server ends.
func (s *server) follow(out *shown) *sync.WaitGroup {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.addr+events, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+out.secrets["admin token"])
	var following sync.WaitGroup
	following.Go(func() {
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			s.t.Error(err)
			return
		}
		text, _ := io.ReadAll(res.Body) // it breaks when the server ends
		_ = res.Body.Close()
		out.add("events", string(text))
	})
	return &following
}

const events = "/api/system/scheduler/events"

// failAJob runs a command that prints its environment and fails.
func (s *server) failAJob(out *shown, secret string) lessor.JobID {
	s.t.Helper()
	c, err := client.New(client.Config{Server: "http://" + s.addr, Token: out.secrets["admin token"]})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	job, err := c.SubmitJob(s.t.Context(), lessor.Submission{Type: new("env"), MaxAttempts: new(int64(1))})
	if err != nil {
		s.t.Fatal(err)
	}
	workspace := s.t.TempDir()
	w := &worker{
		t: s.t, args: []string{
			"work", "--server", "http://" + s.addr, "--type", "env", "--workspace", workspace, "--shell", "--",
			"env; exit 7",
		},
		env: []string{"LESSOR_TOKEN=" + secret, "DATABASE_PASSWORD=" + planted["environment of the worker"]},
	}
	w.wrap = func(c *exec.Cmd) {
		log, err := os.Create(filepath.Join(workspace, "work.log"))
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = log.Close() })
		c.Stdout, c.Stderr = log, log
	}
	w.start()
	s.t.Cleanup(w.kill)
	await(s.t, c, job.ID, "failed", func(j lessor.Job) bool { return j.State == lessor.Failed })
	w.kill()
	out.addFiles("workspace", workspace)
	return job.ID
}

// addFiles collects all files below a folder.
func (o *shown) addFiles(place, folder string) {
	o.t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		o.add(place, path+"\n"+string(data))
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// send makes a call and returns the answer as text, and its body.
func (s *server) send(method, path, body, secret string) (text, answer string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	return s.do(r)
}

func (s *server) do(r *http.Request) (text, answer string) {
	s.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(r) // follows no redirect
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	return fmt.Sprintln(r.Method, r.URL.Path, res.Status, res.Header) + string(body), string(body)
}

// callEverything calls every route of the description as an admin, with a body and without, and as nobody.
func (s *server) callEverything(out *shown, job lessor.JobID) {
	s.t.Helper()
	_, text := s.send("GET", "/openapi.json", "", out.secrets["admin token"])
	var api struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal([]byte(text), &api); err != nil || len(api.Paths) < 50 {
		s.t.Fatalf("%d paths are described (%v)", len(api.Paths), err)
	}
	ids := strings.NewReplacer("{job_id}", job.String(), "{jobId}", job.String(), "{profile}", "goroutine")
	delete(api.Paths, events) // it would not end
	for path, methods := range api.Paths {
		path = regexp.MustCompile(`{\w+}`).ReplaceAllString(ids.Replace(path), "018f0000-0000-7000-8000-000000000000")
		for method := range methods {
			method = strings.ToUpper(method)
			for _, body := range []string{"", "{", `{"worker_id":"w","status":"failed","level":"debug"}`} {
				answer, _ := s.send(method, path, body, out.secrets["admin token"])
				out.add("answers", answer)
			}
			answer, _ := s.send(method, path, "", "")
			out.add("answers", answer)
		}
	}
	for range 3 {
		answer, _ := s.send("GET", "/api/kernel/audit", "", planted["wrong token"])
		out.add("answers", answer)
	}
}

// visitPages logs in by the one-time link and by a token, and visits every page that a page leads to.
func (s *server) visitPages(out *shown, code string, job lessor.JobID) {
	s.t.Helper()
	if code == "" {
		s.t.Fatal("the greeting has no one-time link")
	}
	out.secrets["one-time code"] = code
	visit := func(method, path, form, cookie string) (text, answer string) {
		r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+path, strings.NewReader(form))
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+s.addr)
		r.Header.Set("Cookie", cookie)
		return s.do(r)
	}
	answer, _ := visit("POST", "/login", "token="+planted["wrong token"], "")
	out.add("pages", answer)
	admitted, _ := visit("GET", "/login?code="+code, "", "")
	session := regexp.MustCompile(`lessor_\w+=([^; \]]+)`).FindStringSubmatch(admitted)
	if session == nil {
		s.t.Fatalf("no session: %s", admitted)
	}
	out.secrets["session"] = session[1]
	answer, _ = visit("GET", "/login?code="+code, "", "") // it was used
	out.add("pages", answer)
	seen, next := map[string]bool{}, []string{"/", "/jobs/" + job.String(), "/recovery", "/audit", "/jobs/none"}
	for len(next) > 0 && len(seen) < 200 {
		path := next[0]
		if next = next[1:]; seen[path] {
			continue
		}
		seen[path] = true
		answer, _ := visit("GET", path, "", session[0])
		out.add("pages", answer)
		for _, m := range regexp.MustCompile(`href="(/[^"#]*)"`).FindAllStringSubmatch(answer, -1) {
			next = append(next, strings.ReplaceAll(m[1], "&amp;", "&"))
		}
	}
	if len(seen) < 10 {
		s.t.Errorf("only %d pages were found", len(seen))
	}
}

// endless are commands that run until they are stopped, or need a terminal; shim is started by work.
var endless = []string{"serve", "bench", "top", "shim", "completion", "help"}

// runCommands runs every command without arguments and with a job, and some that fail.
func (s *server) runCommands(out *shown, job lessor.JobID) {
	s.t.Helper()
	folder := s.t.TempDir()
	run := func(args ...string) string {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, args...)
		cmd.Dir = folder
		cmd.Env = append(append(os.Environ(), s.env...), "LESSOR_TOKEN="+out.secrets["admin token"],
			"LESSOR_SERVER=http://"+s.addr, "HOME="+folder)
		text, _ := cmd.CombinedOutput() // many fail
		out.add("commands", string(text))
		return string(text)
	}
	commands := regexp.MustCompile(`(?m)^  ([a-z-]+) {2,}`)
	ran := 0
	var walk func(path ...string)
	walk = func(path ...string) {
		_, below, _ := strings.Cut(run(append(path, "--help")...), "Commands:")
		below, _, _ = strings.Cut(below, "Flags:")
		if len(path) == 0 {
			below = run("--help")
		}
		for _, m := range commands.FindAllStringSubmatch(below, -1) {
			if !slices.Contains(endless, m[1]) {
				walk(append(slices.Clone(path), m[1])...)
			}
		}
		if len(path) > 0 {
			ran++
			run(path...)
			run(append(slices.Clone(path), job.String())...)
		}
	}
	walk()
	if ran < 30 {
		s.t.Errorf("only %d commands were found", ran)
	}
	run("serve", "--print-config")
	run("serve", "--store", "host=db password="+planted["password in libpq's form"])
	run("jobs", "--token", planted["wrong token"])
	run("jobs", "--server", "http://ann:"+planted["password of another server"]+"@127.0.0.1:9")
}

// closeDown reads the database, ends it, calls a server that has none any more, and reads its log.
func (s *server) closeDown(out *shown, db *pgtest.Server) {
	s.t.Helper()
	dump, err := db.Ask(s.t.Context(),
		`select string_agg(query_to_xml(format('select * from %I', tablename), true, false,
		'')::text, '') from pg_tables where schemaname = current_schema()`)
	if err != nil {
		s.t.Fatal(err)
	}
	out.add("database", dump)
	if err := db.Kill(); err != nil {
		s.t.Fatal(err)
	}
	for _, path := range []string{"/health/ready", "/api/system/scheduler/jobs", "/metrics", "/api/admin/doctor"} {
		answer, _ := s.send("GET", path, "", out.secrets["admin token"])
		out.add("answers", answer)
	}
	s.mu.Lock()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.mu.Unlock()
	s.wait()
	log, err := os.ReadFile(filepath.Join(s.data, "stderr"))
	if err != nil {
		s.t.Fatal(err)
	}
	out.add("log", string(log))
}

// check looks for each secret in each place, and that the places have what they should.
func (o *shown) check() {
	o.t.Helper()
	for place, sign := range map[string]string{
		"answers": "lessor_", "pages": "</html>", "commands": "store", "database": "definition", "log": "level=DEBUG",
		"events": "queued", "webhook": "X-Lessor-Signature", "workspace": "LESSOR_FENCE=",
		"greeting": "postgres://postgres:",
	} {
		if !strings.Contains(o.places[place], sign) {
			o.t.Errorf("%s: there is no %q in %.500q", place, sign, o.places[place])
		}
	}
	for name, secret := range o.secrets {
		for place, text := range o.places {
			if at := strings.Index(text, secret); at >= 0 {
				o.t.Errorf("the %s is in %s: …%s…", name, place, text[max(0, at-300):min(len(text), at+len(secret)+50)])
			}
		}
	}
}
