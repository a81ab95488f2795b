package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/node"
	"lessor/worker"
)

// patience is how long a test waits for a program: they take milliseconds, and machines may be slow.
const patience = 30 * time.Second

// town is a server on a loopback port, and the programs that work for it.
type town struct {
	*client.Client
	t   *testing.T
	url string
}

func serve(t *testing.T) town {
	t.Helper()
	cfg := node.Config{Data: t.TempDir()}
	cfg.Capacity.Busy = new(0)
	cfg.Lease.TTL = 3 * time.Second // so that heartbeats matter
	n, err := node.Open(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := town{t: t, url: "http://" + ln.Addr().String()}
	if s.Client, err = client.New(client.Config{Server: s.url}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx, ln) }()
	t.Cleanup(func() {
		s.Close()
		cancel()
		if err := errors.Join(<-served, n.Close()); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}

// program is a process that works for a server.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  bytes.Buffer
	once sync.Once
	err  error
}

// start starts a program, and stops it at the latest when the test ends.
func (s town) start(name string, args ...string) *program {
	s.t.Helper()
	p := &program{t: s.t, cmd: exec.Command(name, args...)}
	p.cmd.Env = append(os.Environ(), "LESSOR_SERVER="+s.url, "LESSOR_TOKEN=", "DRAIN_SECONDS=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", filepath.Base(name), err)
	}
	s.t.Cleanup(func() { p.stop() })
	return p
}

// stop sends SIGTERM, waits for the end, and returns what the program wrote.
func (p *program) stop() string {
	p.t.Helper()
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
		defer kill.Stop()
		if p.err = p.cmd.Wait(); p.err != nil {
			p.t.Errorf("%s ended with %v:\n%s", filepath.Base(p.cmd.Path), p.err, &p.out)
		}
	})
	return p.out.String()
}

func (s town) submit(jobType, payload string) lessor.JobID {
	s.t.Helper()
	job, err := s.Submit(s.t.Context(), jobType, json.RawMessage(payload), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return job.ID
}

// wait waits until a job is as wanted.
func (s town) wait(id lessor.JobID, what string, is func(lessor.Job) bool) lessor.Job {
	s.t.Helper()
	for by := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		job, err := s.Job(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		if is(job) {
			return job
		}
		if time.Now().After(by) {
			s.t.Fatalf("job of type %s is %s after %s, want it %s", job.Type, job.State, patience, what)
		}
	}
}

func (s town) completed(id lessor.JobID) lessor.Job {
	s.t.Helper()
	return s.wait(id, "completed", func(j lessor.Job) bool { return j.State == lessor.Completed })
}

// build compiles the examples, once.
var build = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "examples")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", folder+"/", "./...").CombinedOutput()
	if err != nil {
		err = errors.New(string(out))
	}
	return folder, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if folder, err := build(); err == nil {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// example starts one of the programs.
func (s town) example(name string) *program {
	s.t.Helper()
	folder, err := build()
	if err != nil {
		s.t.Fatalf("build the examples: %v", err)
	}
	return s.start(filepath.Join(folder, name))
}

func TestMinimal(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.submit("greet", `{"name":"world"}`)
	p := s.example("minimal")
	if job := s.completed(id); string(job.Result) != `"Hello, world!"` {
		t.Errorf("the result is %s", job.Result)
	}
	p.stop()
}

func TestMinimalIsFifteenLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("minimal/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "func run() error {\n")
	body, _, found := strings.Cut(body, "\n}\n")
	if n := strings.Count(body, "\n") + 1 + 2; !found || n > 15 {
		t.Errorf("the worker has %d lines, and we say 15", n)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.submit("count", `{"to":25}`)
	first := s.example("drain")
	s.wait(id, "on its way", func(j lessor.Job) bool { return j.Progress != nil && *j.Progress > 0 })
	first.stop()
	job := s.wait(id, "given back", func(j lessor.Job) bool { return j.State == lessor.Queued })
	if job.Attempt != 0 || job.Interruptions != 1 || string(job.Checkpoint) == "null" {
		t.Errorf("attempt %d, %d interruptions, checkpoint %s; want 0, 1 and how far it came",
			job.Attempt, job.Interruptions, job.Checkpoint)
	}
	s.example("drain")
	var end struct {
		Counted     int `json:"counted"`
		ResumedFrom int `json:"resumed_from"`
	}
	if err := json.Unmarshal(s.completed(id).Result, &end); err != nil || end.Counted != 25 || end.ResumedFrom == 0 {
		t.Errorf("the result is %+v (%v), want 25 and where it was resumed", end, err)
	}
}

func TestMailbox(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := s.example("mailbox")
	box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: s.Client, Type: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Send(t.Context(), []byte(`{"item":""}`), nil); err != nil {
		t.Fatal(err)
	}
	s.completed(s.submit("orders", `{"item":"book"}`))
	for by := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		dead, err := box.DeadLetters(t.Context(), 10)
		if err != nil || time.Now().After(by) {
			t.Fatalf("%d dead letters (%v), want the one that always fails", len(dead), err)
		}
		if len(dead) == 1 {
			break
		}
	}
	if out := p.stop(); !strings.Contains(out, `dead letter after 5 deliveries: {"item":""}`) {
		t.Errorf("it wrote:\n%s", out)
	}
}

func TestAgent(t *testing.T) {
	t.Parallel()
	s := serve(t)
	london, oslo := s.submit("questions", `{"city":"London"}`), s.submit("questions", `{"city":"Oslo"}`)
	p := s.example("agent")
	for id, want := range map[lessor.JobID]string{london: "rain in London", oslo: "rain in Oslo"} {
		if job := s.completed(id); !strings.Contains(string(job.Result), want) {
			t.Errorf("the result is %s, want %s in it", job.Result, want)
		}
	}
	if out := p.stop(); !strings.Contains(out, "Tool:forecast Calls:2") ||
		!strings.Contains(out, "Tool:clock Calls:2") {
		t.Errorf("both tools should have been used for each question:\n%s", out)
	}
}
