package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// cancel cancels a job when it runs, and waits for its worker to obey.
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
	greet := s.start("bash", file, "greet", "bash", "-c",
		`read -r grant; [[ $grant =~ \"name\":\"([a-z]+)\" ]] || { echo 'no "name"' >&2; exit 7; }; echo working; echo "{\"greeting\":\"Hello, ${BASH_REMATCH[1]}!\"}"`)
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
