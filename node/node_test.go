package node

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/store/sqlite"
)

// servePipe serves a node on a pipe until the test ends, with a store that does not wait for the disk, and returns a
// client of it.
func servePipe(t *testing.T, cfg Config) (*Node, *client.Client) {
	t.Helper()
	n, err := open(t.Context(), cfg.settings(), nil, sqlite.Config{Synchronous: "OFF"})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	ln, http := Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Serve(ctx, ln) }()
	t.Cleanup(func() {
		http.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve returned %v, want nil after a clean stop", err)
		}
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	c, err := client.New(client.Config{Server: "http://127.0.0.1", HTTP: http})
	if err != nil {
		t.Fatal(err)
	}
	return n, c
}

// serve serves a node until the test ends, at cfg.Listen or at a free port of the loopback address.
func serve(t *testing.T, cfg Config) (n *Node, address string) {
	t.Helper()
	n, err := Open(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", cmp.Or(cfg.Listen, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		_ = n.Close()
	})
	return n, ln.Addr().String()
}

// testConfig returns the settings of a node with a folder of its own. The load of the machine takes no capacity.
func testConfig(t *testing.T) Config {
	cfg := Config{Data: t.TempDir()}
	cfg.Capacity.Busy = new(0)
	return cfg
}

func TestSilentJobExpiresAndIsGrantedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := servePipe(t, testConfig(t))
		ctx := t.Context()
		job, err := c.Submit(ctx, "hello", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		grants, _, err := c.Request(ctx, lessor.LeaseRequest{WorkerID: new("worker-1")})
		if err != nil || len(grants) != 1 {
			t.Fatalf("request: %d grants, %v; want one", len(grants), err)
		}
		time.Sleep(time.Minute + time.Second/2)
		if j, err := n.Job(ctx, job.Job.ID); err != nil || j.State != lessor.Expired {
			t.Fatalf("the silent worker's job is %s (%v), want expired", j.State, err)
		}
		grants, _, err = n.Request(ctx, lessor.LeaseRequest{WorkerID: new("worker-2"), WaitMS: new(int64(5000))})
		if err != nil || len(grants) != 1 || grants[0].Job.Attempt != 2 {
			t.Fatalf("request in process: %+v, %v; want attempt 2", grants, err)
		}
		err = c.Complete(ctx, grants[0].Lease.ID, lessor.Completion{
			WorkerID: new("worker-2"),
			Status:   new("completed"),
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestFirstStartMakesAnAdminTokenThatOnlyItsOwnerReads(t *testing.T) {
	cfg := testConfig(t)
	n, err := Open(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !n.FirstStart() {
		t.Error("FirstStart is false at the first start, want true")
	}
	info, err := os.Stat(n.TokenFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("token file has mode %v (%v), want 0600", info.Mode().Perm(), err)
	}
	secret, _ := os.ReadFile(n.TokenFile())
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(cfg.Data, "lessor.db"))
	if err != nil || strings.Contains(string(raw), strings.TrimSpace(string(secret))) {
		t.Errorf("the database has the token itself (%v), want only its hash", err)
	}
	n, err = Open(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	again, _ := os.ReadFile(n.TokenFile())
	if n.FirstStart() || string(again) != string(secret) {
		t.Errorf("second start: FirstStart is %v, same token: %v; want false and true", n.FirstStart(),
			string(again) == string(secret))
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	cfg := testConfig(t)
	n, err := Open(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := Open(t.Context(), cfg, nil); err == nil || !strings.Contains(err.Error(), "lessor.db") {
		t.Errorf("a second node on the same file: %v, want an error that names the file", err)
	}
}

func TestDatabaseOutOfReachIsRefused(t *testing.T) {
	cfg := testConfig(t)
	cfg.Store = "postgres://nobody@127.0.0.1:1/lessor?connect_timeout=1"
	if _, err := Open(t.Context(), cfg, nil); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a store out of reach: %v, want an error that names the host", err)
	}
}

func TestStopAnswersRequestsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := open(t.Context(), testConfig(t).settings(), nil, sqlite.Config{Synchronous: "OFF"})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- n.Run(ctx) }()
		time.AfterFunc(time.Second, stop)
		start := time.Now()
		_, denial, err := n.Request(context.Background(),
			lessor.LeaseRequest{WorkerID: new("w"), WaitMS: new(int64(30_000))})
		if denial == nil && lessor.CodeOf(err) != lessor.CodeUnavailable || time.Since(start) > 2*time.Second {
			t.Errorf("answered %+v, %v after %v; want a denial or 503 at the stop after 1 s",
				denial, err, time.Since(start))
		}
		if err := <-ran; err != nil {
			t.Errorf("Run returned %v, want nil after a clean stop", err)
		}
	})
}
