package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/sentinel"
	"lessor/node"
)

// briefQuestion is a question whose answer a command awaits for only a second.
const briefQuestion = "Anybody?"

// TestMain makes the test binary the program that Runners start as a shim and that commands call as `lessor`.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "shim":
			os.Exit(exitCode(shimMain()))
		case "doomed":
			os.Exit(exitCode(doomedMain()))
		case "beat":
			os.Exit(exitCode(inside(func(f *sentinel.Folder) error {
				return SendBeat(f, sentinel.Status(os.Getenv("STATUS")))
			})))
		case "ask":
			os.Exit(exitCode(inside(func(f *sentinel.Folder) error {
				within := map[bool]time.Duration{true: time.Second, false: time.Hour}[os.Args[2] == briefQuestion]
				answer, err := Ask(context.Background(), f, os.Args[2], os.Args[3:], within)
				_, written := os.Stdout.WriteString(answer)
				return errors.Join(err, written)
			})))
		case "progress":
			os.Exit(exitCode(inside(func(f *sentinel.Folder) error {
				n, err := strconv.ParseFloat(os.Args[2], 64)
				return errors.Join(err, SendProgress(f, n, os.Args[3]))
			})))
		}
	}
	os.Exit(m.Run())
}

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func shimMain() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // as package cli does
	token, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	return RunShim(ctx, ShimConfig{
		Folder: os.Args[2], Token: string(token), Environ: os.Environ(),
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// doomedMain is a shim that is killed after it wrote its exit record and before it removed its sentinel.
func doomedMain() error {
	f, err := sentinel.OpenFolder(os.Args[2])
	if err != nil {
		return err
	}
	o, err := readOrder(f)
	if err != nil {
		return err
	}
	return errors.Join(writeEnd(f, o.Grant), syscall.Kill(os.Getpid(), syscall.SIGKILL))
}

// writeEnd writes the files that such a shim leaves in a folder.
func writeEnd(f *sentinel.Folder, g lessor.Grant) error {
	return errors.Join(
		f.WriteSentinel(sentinel.Sentinel{
			JobID: g.Job.ID, Status: sentinel.Running, LastHeartbeat: lessor.At(time.Now()), Seq: 1,
			Fence: g.Lease.Fence,
		}),
		f.WriteExit(sentinel.Exit{
			JobID: g.Job.ID, LeaseID: g.Lease.ID, WorkerID: g.Lease.WorkerID, Fence: g.Lease.Fence,
			Attempt: g.Job.Attempt,
			Status:  lessor.Completed, Result: []byte(`{"n":7}`),
		}),
	)
}

// inside calls fn with the folder of the job in which this program runs.
func inside(fn func(*sentinel.Folder) error) error {
	f, err := Inside(os.Getenv)
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}

// bench is a server and a workspace to run commands in.
type bench struct {
	t         *testing.T
	client    *client.Client
	server    string
	workspace string
}

// testToken is a text that is in no file or output unless the token leaked into it.
const testToken = "a-token-that-belongs-nowhere-else"

// newBench serves a node with this ttl of leases until the test ends.
func newBench(t *testing.T, ttl time.Duration) *bench {
	t.Helper()
	cfg := node.Config{Data: t.TempDir(), AdminToken: testToken}
	cfg.Sentinel.Scan = 500 * time.Millisecond
	cfg.Lease.TTL, cfg.Jobs.BackoffFirst, cfg.Capacity.Busy = ttl, 10*time.Millisecond, new(0)
	ctx, cancel := context.WithCancel(context.Background()) // the clean-up of shims needs the server
	n, err := node.Open(ctx, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := n.Serve(ctx, ln); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	b := &bench{t: t, server: "http://" + ln.Addr().String(), workspace: t.TempDir()}
	b.client, err = client.New(client.Config{Server: b.server, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.endShims()
		b.client.Close()
		cancel()
		serving.Wait()
		_ = n.Close()
	})
	return b
}

// endShims ends the shims that still run, so that no test leaves a process behind.
func (b *bench) endShims() {
	w, err := sentinel.Open(b.workspace)
	if err != nil {
		b.t.Error(err)
		return
	}
	defer w.Close()
	jobs, err := w.Jobs()
	if err != nil {
		b.t.Error(err)
	}
	for _, id := range jobs {
		f, err := w.Folder(id)
		if err != nil {
			continue
		}
		if held, _ := f.Locked(); held {
			_ = f.AskToStop(1 << 62)
			await(b.t, "the shim of "+id.String()+" to end", func() bool { held, _ := f.Locked(); return !held })
		}
		_ = f.Close()
	}
}

// await fails the test if done does not return true within a minute.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// runner returns a Runner that is not yet running.
func (b *bench) runner(change func(*Config), script string) *Runner {
	b.t.Helper()
	cfg := Config{
		Server: b.server, Token: testToken, Workspace: b.workspace, Worker: "test", Types: []string{"t"},
		Shim: []string{os.Args[0], "shim"}, Environ: append(os.Environ(), "LESSOR="+os.Args[0]),
		Log: slog.New(slog.NewTextHandler(b.t.Output(), nil)),
		Task: Task{
			Command: []string{"/bin/sh", "-c", script}, Env: []string{"LESSOR"}, ExtendOn: lessor.ExtendOnLife,
			PulseEvery: 50 * time.Millisecond, KillGrace: 300 * time.Millisecond,
		},
	}
	if change != nil {
		change(&cfg)
	}
	r, err := NewRunner(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = r.Close() })
	return r
}

// work runs a Runner until the function that it returns is called.
func (b *bench) work(change func(*Config), script string) (stop func()) {
	b.t.Helper()
	r := b.runner(change, script)
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			b.t.Errorf("run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	b.t.Cleanup(stop)
	return stop
}

func (b *bench) submit(payload string) lessor.JobID {
	b.t.Helper()
	j, err := b.client.Submit(b.t.Context(), "t", json.RawMessage(payload), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return j.Job.ID
}

// awaitJob waits until is returns true for a job, and returns the job.
func (b *bench) awaitJob(id lessor.JobID, what string, is func(lessor.Job) bool) lessor.Job {
	b.t.Helper()
	var job lessor.Job
	defer func() {
		if b.t.Failed() {
			b.t.Logf("the job is %+v\nthe log of its shim is\n%s", job, b.read(id, shimLogName))
		}
	}()
	await(b.t, "job to be "+what, func() bool {
		var err error
		if job, err = b.client.Job(b.t.Context(), id); err != nil {
			b.t.Fatal(err)
		}
		return is(job)
	})
	return job
}

func (b *bench) awaitState(id lessor.JobID, want lessor.State) lessor.Job {
	b.t.Helper()
	return b.awaitJob(id, string(want), func(j lessor.Job) bool { return j.State == want })
}

func (b *bench) file(id lessor.JobID, name string) string {
	return filepath.Join(b.workspace, "jobs", id.String(), name)
}

// valueOf returns the value of an optional field as text, or "none".
func valueOf[T any](p *T) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprint(*p)
}

// read returns the content of a file in a job's folder, "" if there is no file.
func (b *bench) read(id lessor.JobID, name string) string {
	raw, _ := os.ReadFile(b.file(id, name))
	return string(raw)
}

// awaitFile waits until a file in a job's folder ends with a newline, and returns its text.
func (b *bench) awaitFile(id lessor.JobID, name string) string {
	b.t.Helper()
	await(b.t, name, func() bool { return strings.HasSuffix(b.read(id, name), "\n") })
	return strings.TrimSpace(b.read(id, name))
}

func (b *bench) folder(id lessor.JobID) *sentinel.Folder {
	b.t.Helper()
	w, err := sentinel.Open(b.workspace)
	if err != nil {
		b.t.Fatal(err)
	}
	f, err := w.MakeFolder(id)
	if err = errors.Join(err, w.Close()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = f.Close() })
	return f
}
