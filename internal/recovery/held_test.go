package recovery

import (
	"testing"
	"time"

	"lessor"
)

// TestHeldFolderElsewhereIsClearedWhenTheJobRuns: the alert about a folder in another workspace outlives a restart of
// the server and the next worker's wait for the folder, and ends when the job has run for a minute.
func TestHeldFolderElsewhereIsClearedWhenTheJobRuns(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		g := w.takeElsewhere()
		r := lessor.Release{WorkerID: &g.Lease.WorkerID, Reason: new(lessor.ReleaseFolderHeld)}
		if err := w.Release(w.ctx, anybody, g.Lease.ID, r); err != nil {
			t.Fatal(err)
		}
		w.wantAlerts("+hung")
		w.restart(time.Second)
		w.pass(2 * time.Minute)
		w.wantAlerts()
		g = w.takeElsewhere()
		if _, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, lessor.Heartbeat{WorkerID: new("w")}); err != nil {
			t.Fatal(err)
		}
		w.pass(30 * time.Second)
		w.wantAlerts()
		w.pass(3 * time.Minute)
		w.wantAlerts("-hung")
	})
}

// takeElsewhere leases a job to a worker with another workspace.
func (w *world) takeElsewhere() lessor.Grant {
	w.t.Helper()
	grants, denial, err := w.Request(w.ctx, anybody, lessor.LeaseRequest{
		WorkerID: new("w"), TTLMS: new((2 * time.Hour).Milliseconds()), WaitMS: new(int64(5000)),
		WorkspaceID: new("elsewhere"),
	})
	if err != nil || denial != nil {
		w.t.Fatalf("not leased: %+v %v", denial, err)
	}
	return grants[0]
}

// TestHeldFolderIsClearedWhenTheJobHasEnded: nobody will run a job that was cancelled while it waited.
func TestHeldFolderIsClearedWhenTheJobHasEnded(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		job := w.submit()
		g := w.takeElsewhere()
		r := lessor.Release{WorkerID: &g.Lease.WorkerID, Reason: new(lessor.ReleaseFolderHeld)}
		if err := w.Release(w.ctx, anybody, g.Lease.ID, r); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Minute)
		w.wantAlerts("+hung")
		if _, err := w.Cancel(w.ctx, anybody, job.ID, false); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Minute)
		w.wantAlerts("-hung")
	})
}
