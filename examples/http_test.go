package examples_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lessor"
)

// extract writes the first block in a language of docs/http-workers.md to a file.
func extract(t *testing.T, language, name string) (file string) {
	t.Helper()
	text, err := os.ReadFile("../docs/http-workers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "\n```"+language+"\n")
	code, _, found := strings.Cut(code, "\n```\n")
	if !found {
		t.Fatalf("docs/http-workers.md has no block of %s", language)
	}
	file = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(code+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func need(t *testing.T, tool string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Fatalf("%s is needed to run what docs/http-workers.md shows: install it (Debian: apt-get install %s)",
			tool, tool)
	}
}

// back waits until a job that a drain interrupted is queued again, at no cost.
func (s town) back(id lessor.JobID) lessor.Job {
	s.t.Helper()
	job := s.wait(id, "given back", func(j lessor.Job) bool { return j.State == lessor.Queued })
	if job.Attempt != 0 || job.Interruptions != 1 {
		s.t.Errorf("attempt %d after %d interruptions, want 0 after 1", job.Attempt, job.Interruptions)
	}
	return job
}

// cancel cancels a job when it runs, and waits until its worker has stopped.
func (s town) cancel(id lessor.JobID) {
	s.t.Helper()
	s.wait(id, "running", func(j lessor.Job) bool { return j.State == lessor.Running })
	if _, err := s.Cancel(s.t.Context(), id, false); err != nil {
		s.t.Fatal(err)
	}
	s.wait(id, "cancelled", func(j lessor.Job) bool { return j.State == lessor.Cancelled })
}

func TestPythonWorker(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	s := serve(t)
	file := extract(t, "python", "worker.py")
	s.url = "http://127.0.0.1:1, " + s.url // the first one of the list is away
	p := s.start("python3", file)
	greeted, failed := s.submit("greet", `{"name":"world"}`), s.submit("greet", `{}`)
	if job := s.completed(greeted); string(job.Result) != `{"greeting":"Hello, world!"}` {
		t.Errorf("the result is %s", job.Result)
	}
	job := s.wait(failed, "failed", func(j lessor.Job) bool { return j.State == lessor.Failed })
	if job.Error == nil || !strings.Contains(*job.Error, "KeyError: 'name'") {
		t.Errorf("the error is %v, want the traceback", job.Error)
	}
	cancelled := s.submit("count", `{"to":1000}`)
	s.cancel(cancelled)
	long := s.submit("count", `{"to":100}`)
	s.wait(long, "running", func(j lessor.Job) bool { return j.State == lessor.Running })
	p.stop()
	if job := s.back(long); string(job.Checkpoint) == "null" {
		t.Error("it did not say how far it came")
	}
	s.start("python3", file)
	s.completed(long)
}

func TestBashWorker(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	need(t, "curl")
	s := serve(t)
	file := extract(t, "bash", "worker.sh")
	s.url = "http://127.0.0.1:1," + s.url // the first one of the list is away
	greet := s.start("bash", file, "greet", "bash", "-c",
		`read -r grant;
			[[ $grant =~ \"name\":\"([a-z]+)\" ]] || { echo 'no "name"' >&2; exit 7; };
			echo working;
			echo "{\"greeting\":\"Hello, ${BASH_REMATCH[1]}!\"}"`)
	greeted, failed := s.submit("greet", `{"name":"world"}`), s.submit("greet", `{}`)
	if job := s.completed(greeted); string(job.Result) != `{"greeting":"Hello, world!"}` {
		t.Errorf("the result is %s", job.Result)
	}
	job := s.wait(failed, "failed", func(j lessor.Job) bool { return j.State == lessor.Failed })
	if job.Error == nil || !strings.Contains(*job.Error, "exit code 7") || !strings.Contains(*job.Error, `no "name"`) {
		t.Errorf("the error is %v, want the exit code and what was written", job.Error)
	}
	greet.stop()

	long := s.start("bash", file, "long", "bash", "-c", "while sleep 0.1; do echo tick; done")
	s.cancel(s.submit("long", `{}`))
	id := s.submit("long", `{}`)
	s.wait(id, "leased", func(j lessor.Job) bool { return j.LeaseID != nil })
	long.stop()
	s.back(id)
}

// unheard returns a server in front of s that passes heartbeats on and loses their answers.
func (s town) unheard() town {
	s.t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/leases/heartbeat") {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	s.t.Cleanup(front.Close)
	s.url = front.URL
	return s
}

// TestWorkersReleaseWhatTheyCannotKeep: the lease lives, and the worker does not know it.
func TestWorkersReleaseWhatTheyCannotKeep(t *testing.T) {
	for language, args := range workers(t) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			id := s.submit("count", `{"to":10000}`)
			p := s.unheard().start(args[0], args[1:]...)
			s.wait(id, "given back", func(j lessor.Job) bool { return j.Interruptions > 0 })
			p.stop()
		})
	}
}

func TestRefusedWorkersExitWithAnError(t *testing.T) {
	for language, args := range workers(t) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "LESSOR_SERVER="+s.url, "LESSOR_TOKEN=wrong")
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 ||
				!strings.Contains(string(out), "unauthenticated") {
				t.Errorf("it ended with %v and said\n%s", err, out)
			}
		})
	}
}

// TestCtrlCEndsAWaitingWorker: a terminal sends the signal to the worker and to the program with which it calls.
func TestCtrlCEndsAWaitingWorker(t *testing.T) {
	for language, args := range workers(t) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "LESSOR_SERVER="+s.url, "LESSOR_TOKEN=")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for by := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
				if list, err := s.Workers(t.Context()); err != nil || time.Now().After(by) {
					t.Fatalf("the worker did not request work: %v", err)
				} else if len(list) > 0 {
					break
				}
			}
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil || out.Len() > 0 {
				t.Errorf("it ended with %v and said\n%s", err, &out)
			}
		})
	}
}

// workers returns how to start each worker of the page for jobs of type count.
func workers(t *testing.T) map[string][]string {
	t.Helper()
	need(t, "python3")
	need(t, "bash")
	need(t, "curl")
	return map[string][]string{
		"python": {"python3", extract(t, "python", "worker.py")},
		"bash": {
			"bash", extract(t, "bash", "worker.sh"), "count", "bash", "-c", "while sleep 0.1; do echo tick; done",
		},
	}
}
