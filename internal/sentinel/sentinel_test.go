package sentinel

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

var (
	jobA = mustJob("0196a1b2-0000-7000-8000-00000000000a")
	jobB = mustJob("0196a1b2-0000-7000-8000-00000000000b")
)

func mustJob(s string) lessor.JobID {
	u, err := lessor.ParseUUID(s)
	if err != nil {
		panic(err)
	}
	return lessor.JobID{UUID: u}
}

func pulse(id lessor.JobID, seq int64) Sentinel {
	return Sentinel{
		JobID: id, Status: Running, LastHeartbeat: 1_760_524_245_123, WorkspacePath: "/w/jobs/" + id.String(),
		SessionID: "abc123def456", AgentEngine: "claude-code", StartedAt: 1_760_522_400_000, Seq: seq, Fence: 7,
		LastProgress: 1_760_524_240_000,
	}
}

func open(t testing.TB) *Workspace {
	t.Helper()
	w, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func makeFolder(t testing.TB, w *Workspace, id lessor.JobID) *Folder {
	t.Helper()
	f, err := w.MakeFolder(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestSentinelIsReadAsWritten(t *testing.T) {
	f := makeFolder(t, open(t), jobA)
	want := pulse(jobA, 3)
	if err := f.WriteSentinel(want); err != nil {
		t.Fatal(err)
	}
	got, err := f.Sentinel()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(f.Join(".sentinel.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v (%v), want it readable by its owner only", info.Mode(), err)
	}
	if err := f.RemoveSentinel(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Sentinel(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after its removal: %v", err)
	}
	if err := f.RemoveSentinel(); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}

// TestSentinelHasTheFieldsOfTheContract writes one and looks at it as another program would.
func TestSentinelHasTheFieldsOfTheContract(t *testing.T) {
	f := makeFolder(t, open(t), jobA)
	if err := f.WriteSentinel(pulse(jobA, 3)); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(f.Join(".sentinel.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"jobId": jobA.String(), "status": "running", "lastHeartbeat": "2025-10-15T10:30:45.123Z",
		"workspacePath": "/w/jobs/" + jobA.String(), "sessionId": "abc123def456", "agentEngine": "claude-code",
		"startedAt": "2025-10-15T10:00:00.000Z", "seq": 3.0, "fence": 7.0, "lastProgress": "2025-10-15T10:30:40.000Z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSentinelOfAnotherWriterIsRead has the seven fields that a program that is not ours would write, and one more.
func TestSentinelOfAnotherWriterIsRead(t *testing.T) {
	f := makeFolder(t, open(t), jobA)
	text := `{"jobId":"` + jobA.String() + `","status":"processing","lastHeartbeat":"2199-10-15T10:30:45.123+02:00",
		"workspacePath":"/w","sessionId":"s","agentEngine":"gemini","startedAt":"2025-10-15T10:00:00Z","colour":"red"}`
	put(t, f, text)
	s, err := f.Sentinel()
	if err != nil {
		t.Fatal(err)
	}
	if s.Seq != 0 || s.Fence != 0 || !s.LastProgress.IsZero() ||
		s.LastHeartbeat.String() != "2199-10-15T08:30:45.123Z" {
		t.Errorf("read as %+v", s)
	}
}

func put(t *testing.T, f *Folder, text string) {
	t.Helper()
	if err := os.WriteFile(f.Join(".sentinel.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestExitIsReadAsWritten(t *testing.T) {
	f := makeFolder(t, open(t), jobA)
	want := Exit{
		JobID: jobA, LeaseID: lessor.LeaseID(jobB), WorkerID: "w", Fence: 7, Attempt: 2, Status: lessor.Completed,
		StartedAt: 1, EndedAt: 2, Result: json.RawMessage(`{"n":1.50}`), Checkpoint: json.RawMessage(`[1]`), Error: "e",
	}
	if err := f.WriteExit(want); err != nil {
		t.Fatal(err)
	}
	got, err := f.Exit()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c := got.Completion()
	if *c.WorkerID != "w" || *c.Status != "completed" || string(c.Result) != `{"n":1.50}` || *c.Error != "e" {
		t.Errorf("reported as %+v", c)
	}
	for name, spoil := range map[string]func(*Exit){
		"no end":   func(e *Exit) { e.Status = lessor.Running },
		"no lease": func(e *Exit) { e.LeaseID = lessor.LeaseID{} },
		"no fence": func(e *Exit) { e.Fence = 0 },
		"another":  func(e *Exit) { e.JobID = jobB },
		"huge":     func(e *Exit) { e.Error = strings.Repeat("x", maxExit) },
	} {
		e := want
		spoil(&e)
		if err := f.WriteExit(e); err == nil {
			t.Errorf("%s: was written", name)
		}
	}
}

// TestReaderNeverSeesHalfAFile reads as fast as it can while sentinels of very different lengths are written.
func TestReaderNeverSeesHalfAFile(t *testing.T) {
	f := makeFolder(t, open(t), jobA)
	if err := f.WriteSentinel(pulse(jobA, 1)); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	done := make(chan struct{})
	writing.Go(func() {
		defer close(done)
		for i := range int64(200) {
			s := pulse(jobA, i+2)
			s.WorkspacePath = strings.Repeat("p", int(i%2)*4000)
			if err := f.WriteSentinel(s); err != nil {
				t.Errorf("write %d: %v", i, err)
			}
		}
	})
	last, reads := int64(0), 0
	for running := true; running; reads++ {
		select {
		case <-done:
			running = false
		default:
		}
		s, err := f.Sentinel()
		if bad, ok := errors.AsType[*InvalidError](err); ok && bad.Reason == Unreadable {
			continue // replaced three times during one read: the writer here is faster than any shim
		}
		if err != nil || s.Seq < last {
			t.Fatalf("read %d: seq %d after %d, %v", reads, s.Seq, last, err)
		}
		last = s.Seq
	}
	writing.Wait()
	if last != 201 {
		t.Errorf("the last pulse read is %d of 201", last)
	}
}

func TestWorkspaceKeepsItsID(t *testing.T) {
	dir := t.TempDir()
	ids := make([]string, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			w, err := Open(filepath.Join(dir, "w"))
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = w.ID()
			_ = w.Close()
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("one workspace has the ids %q", ids)
		}
	}
	name := filepath.Join(dir, "w", ".lessor-workspace")
	if err := os.WriteFile(name, []byte("with space\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "w")); err == nil {
		t.Error("an id with a space was accepted")
	}
	if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "w")); err == nil {
		t.Error("a pipe was accepted as the id")
	}
}
