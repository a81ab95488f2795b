package node

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/sentinel"
	"lessor/internal/store/sqlite"
)

// startNode runs a node until the function that it returns is called.
func startNode(t *testing.T, cfg Config) (*Node, func()) {
	t.Helper()
	n, err := open(t.Context(), cfg.settings(), nil, sqlite.Config{Synchronous: "OFF"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	synctest.Wait()
	return n, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestNodeWatchesItsWorkspaceAndServesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(t)
		cfg.AdminToken, cfg.Sentinel.Scan = "an-admin-token", 10*time.Second
		n, end := startNode(t, cfg)
		ws, err := sentinel.Open(filepath.Join(cfg.Data, "workspace"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ws.Close() }()
		job, err := n.Submit(t.Context(), "long", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		grants, _, err := n.Request(t.Context(), lessor.LeaseRequest{WorkerID: new("w"), WorkspaceID: new(ws.ID())})
		if err != nil {
			t.Fatal(err)
		}
		f, err := ws.MakeFolder(job.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		pulse := sentinel.Sentinel{
			JobID: job.ID, Status: sentinel.Running, LastHeartbeat: lessor.At(time.Now()),
			Seq: 1, Fence: grants[0].Lease.Fence,
		}
		if err := f.WriteSentinel(pulse); err != nil {
			t.Fatal(err)
		}
		end()
		time.Sleep(10 * time.Minute)
		n, end = startNode(t, cfg)
		defer end()
		if err := n.scheduler.Ready(); err != nil {
			t.Errorf("the node is not ready while it watches: %v", err)
		}
		if st := n.recovery.Known().Status(); st.Summary.Watching != 1 || !strings.HasSuffix(st.Node, ":5377") {
			t.Errorf("status: %+v, want one watched job and a node at port 5377", st)
		}
		metrics := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:5377/metrics", nil)
		r.RemoteAddr = "127.0.0.1:1"
		n.Handler().ServeHTTP(metrics, r)
		if body, _ := io.ReadAll(metrics.Body); !strings.Contains(string(body), `lessor_sentinels{verdict="stale"} 1`) {
			t.Errorf("want one stale sentinel in the metrics:\n%s", body)
		}
		time.Sleep(time.Minute)
		pulse.LastHeartbeat, pulse.Seq = lessor.At(time.Now()), 2
		if err := f.WriteSentinel(pulse); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if j, err := n.Job(t.Context(), job.ID); err != nil || !j.Reattached || j.State != lessor.Running {
			t.Errorf("job: %+v, %v; want it running and reattached", j, err)
		}
	})
}
