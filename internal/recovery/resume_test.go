package recovery

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lessor"
)

// The job of a dead command may be resumed before its retry: the list says so, and the new job takes the place of the
// retry.
func TestDeadJobIsResumed(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		if _, err := w.Heartbeat(w.ctx, anybody, c.grant.Lease.ID,
			lessor.Heartbeat{WorkerID: new("worker"), Checkpoint: []byte(`{"page":7}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.monitor.Resume(w.ctx, anybody, c.id, true); lessor.CodeOf(err) != lessor.CodeConflict {
			t.Errorf("a running job is resumed: %v", err)
		}
		if _, err := w.monitor.MarkDead(w.ctx, anybody, c.id); err != nil {
			t.Fatal(err)
		}
		resumable := func() bool {
			failed, err := w.monitor.Failed(w.ctx)
			if err != nil || len(failed.FailedJobs) != 1 || failed.FailedJobs[0].JobID != c.id {
				t.Fatalf("failed: %+v, %v", failed, err)
			}
			return failed.FailedJobs[0].Resumable
		}
		if !resumable() {
			t.Error("a dead job that waits for its retry is not resumable")
		}
		r, err := w.monitor.Resume(w.ctx, anybody, c.id, true)
		if err != nil || r.JobID != c.id || r.Status != lessor.Queued {
			t.Fatalf("resumed: %+v, %v", r, err)
		}
		if _, err := w.monitor.Resume(w.ctx, anybody, c.id, true); lessor.CodeOf(err) != lessor.CodeConflict ||
			!strings.Contains(err.Error(), r.NewJobID.String()) {
			t.Errorf("a second resume: %v, want a conflict that names %s", err, r.NewJobID)
		}
		if next := w.take(nil); next.id != r.NewJobID || string(next.grant.Job.Checkpoint) != `{"page":7}` {
			t.Errorf("granted %s with checkpoint %s, want %s", next.id, next.grant.Job.Checkpoint, r.NewJobID)
		}
		if resumable() {
			t.Error("the job can be resumed a second time")
		}
	})
}

// files returns the names and the texts of the files in a job's folder, without our own.
func (w *world) files(id lessor.JobID) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	names, err := filepath.Glob(filepath.Join(w.ws.Path(), "jobs", id.String(), "[^.]*"))
	for _, name := range names {
		data, readErr := os.ReadFile(name)
		err = errors.Join(err, readErr)
		all[filepath.Base(name)] = string(data)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (c *command) file(name, text string) {
	c.w.t.Helper()
	if err := os.WriteFile(filepath.Join(c.folder(), name), []byte(text), 0o600); err != nil {
		c.w.t.Fatal(err)
	}
}

// The default session of a job has the name of the job, so its files are renamed. Other files keep their names.
func TestResumeKeepsTheSessionFiles(t *testing.T) {
	once := func(payload string) func(*lessor.Submission) {
		return func(s *lessor.Submission) { s.MaxAttempts, s.Payload = new(int64(1)), []byte(payload) }
	}
	inWorld(t, settings(), func(t *testing.T, w *world) {
		named, unnamed := w.command(once(`{"session_id":"s-7"}`)), w.command(once(`{}`))
		named.file("s-7.jsonl", "what was said")
		named.file("stdout.log", "the output stays where it is")
		unnamed.file(unnamed.id.String()+".jsonl", "mine")
		unnamed.file("session-1.db", "of the sentinel")
		for _, c := range []*command{named, unnamed} {
			if _, err := w.monitor.MarkDead(w.ctx, anybody, c.id); err != nil {
				t.Fatal(err)
			}
		}
		first, err := w.monitor.Resume(w.ctx, anybody, named.id, true)
		if want := map[string]string{"s-7.jsonl": "what was said"}; err != nil || first.SessionFiles != 1 ||
			!maps.Equal(w.files(first.NewJobID), want) {
			t.Errorf("resumed: %+v, %v; files %v, want %v", first, err, w.files(first.NewJobID), want)
		}
		second, err := w.monitor.Resume(w.ctx, anybody, unnamed.id, true)
		want := map[string]string{second.NewJobID.String() + ".jsonl": "mine", "session-1.db": "of the sentinel"}
		if err != nil || second.SessionFiles != 2 || !maps.Equal(w.files(second.NewJobID), want) {
			t.Errorf("resumed: %+v, %v; files %v, want %v", second, err, w.files(second.NewJobID), want)
		}
		w.pass(31 * time.Second) // the cleanup of the old folders leaves the new ones alone
		if named.exists() || unnamed.exists() || len(w.files(first.NewJobID)) != 1 ||
			len(w.files(second.NewJobID)) != 2 {
			t.Errorf("old folders %v, %v, new files %v, %v", named.exists(), unnamed.exists(), w.files(first.NewJobID),
				w.files(second.NewJobID))
		}
	})
}

// A resume that is refused leaves no folder behind, and a job without a folder can be resumed.
func TestRefusedResumeCopiesNothing(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
		for i := range 1001 {
			c.file("session-1."+strings.Repeat("x", i/30)+string(rune('a'+i%30)), "")
		}
		folders := func() []string {
			names, err := filepath.Glob(filepath.Join(w.ws.Path(), "jobs", "*"))
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		if _, err := w.monitor.MarkDead(w.ctx, anybody, c.id); err != nil {
			t.Fatal(err)
		}
		before := folders()
		if _, err := w.monitor.Resume(w.ctx, anybody, c.id, true); lessor.CodeOf(err) != lessor.CodeConflict ||
			!strings.Contains(err.Error(), "1001 files") {
			t.Errorf("too many files: %v", err)
		}
		if !slices.Equal(folders(), before) {
			t.Errorf("folders %v, want %v", folders(), before)
		}
		w.pass(31 * time.Second) // the folder is removed
		if r, err := w.monitor.Resume(w.ctx, anybody, c.id, true); err != nil || r.SessionFiles != 0 {
			t.Errorf("without a folder: %+v, %v", r, err)
		}
	})
}

func TestResumeOfADeadJobThatIsQueuedAgainSaysSo(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		if _, err := w.monitor.MarkDead(w.ctx, anybody, c.id); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		c.want(lessor.Queued)
		_, err := w.monitor.Resume(w.ctx, anybody, c.id, true)
		if lessor.CodeOf(err) != lessor.CodeConflict ||
			!strings.Contains(err.Error(), "queued again: it is queued now, after attempt 1 of 5") {
			t.Errorf("resumed: %v", err)
		}
	})
}

func TestEachReattachmentIsInTheRecord(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		for range 3 {
			w.restart(time.Second)
			c.pulse()
			c.live(30 * time.Second)
		}
		record, _, err := w.Events(w.ctx, anybody, c.id, 100, "")
		reattached := 0
		for i, e := range record {
			if e.Reason == "reattached" {
				reattached++
			}
			if e.Seq != i+1 {
				t.Errorf("entry %d has the number %d", i+1, e.Seq)
			}
		}
		if err != nil || reattached != 3 || !w.job(c.id).Reattached {
			t.Errorf("%d reattachments in %+v, %v", reattached, record, err)
		}
	})
}
