package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
	"lessor/internal/store/sqlite"
)

// BenchmarkScan is a whole step of the monitor (files, leases, verdicts) over commands that all run, with a tenth of
// the sentinels changed since the last step, with all of them, and with none.
func BenchmarkScan(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, leases := manyCommands(b, n)
			seq := 1
			writePulses(b, m.workspace, leases, seq)
			if err := m.scan(b.Context()); err != nil {
				b.Fatal(err)
			}
			for _, c := range []struct {
				name    string
				changed int
			}{{"none", 0}, {"tenth", n / 10}, {"all", n}} {
				b.Run(c.name, func(b *testing.B) {
					for b.Loop() {
						b.StopTimer()
						seq++
						writePulses(b, m.workspace, leases[:c.changed], seq)
						b.StartTimer()
						if err := m.scan(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			if got := m.Known().Heartbeats().Summary; got != (lessor.HeartbeatSummary{Total: n, Fresh: n}) {
				b.Errorf("after it: %+v", got)
			}
		})
	}
}

// manyCommands makes a monitor over n jobs that are leased from its workspace.
func manyCommands(b *testing.B, n int) (*Monitor, []lessor.Lease) {
	b.Helper()
	store, err := sqlite.Open(b.Context(),
		sqlite.Config{Path: filepath.Join(b.TempDir(), "lessor.db"), Synchronous: "OFF"})
	if err != nil {
		b.Fatal(err)
	}
	ws, err := sentinel.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	s := scheduler.New(store, scheduling())
	done := make(chan error, 1)
	ctx := b.Context() // it ends before the clean-ups
	go func() { done <- s.Run(ctx) }()
	b.Cleanup(func() {
		if err := errors.Join(<-done, store.Close(), ws.Close()); err != nil {
			b.Error(err)
		}
	})
	var leases []lessor.Lease
	for len(leases) < n {
		subs := make([]lessor.Submission, 500)
		for i := range subs {
			subs[i].Type = new("long")
		}
		if _, err := s.SubmitBatch(ctx, anybody, subs); err != nil {
			b.Fatal(err)
		}
		grants, denial, err := s.Request(ctx, anybody, lessor.LeaseRequest{
			WorkerID: new("worker"), WorkspaceID: new(ws.ID()), MaxLeases: new(int64(500)),
			TTLMS: new(int64(12 * 3600_000)),
		})
		if err != nil || denial != nil {
			b.Fatalf("%+v %v", denial, err)
		}
		for _, g := range grants {
			leases = append(leases, g.Lease)
		}
	}
	cfg := settings()
	cfg.Scheduler, cfg.Workspace = s, ws
	return New(cfg), leases
}

// writePulses writes sentinels without syncing them: 50,000 syncs take minutes, and a scan does not need them.
func writePulses(b *testing.B, ws *sentinel.Workspace, leases []lessor.Lease, seq int) {
	b.Helper()
	now := lessor.At(time.Now())
	for _, l := range leases {
		dir := filepath.Join(ws.Path(), "jobs", l.JobID.String())
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			b.Fatal(err)
		}
		text := fmt.Sprintf(`{"jobId":%q,"status":"running","lastHeartbeat":%q,"workspacePath":%q,`+
			`"sessionId":"abc123def456","agentEngine":"claude-code",`+
			`"startedAt":"2025-10-15T10:00:00.000Z","seq":%d,"fence":%d,"lastProgress":null}`,
			l.JobID, now, dir, seq, l.Fence)
		name := filepath.Join(dir, ".sentinel.json")
		if err := errors.Join(os.WriteFile(name+"x", []byte(text), 0o600), os.Rename(name+"x", name)); err != nil {
			b.Fatal(err)
		}
	}
}
