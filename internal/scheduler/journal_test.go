package scheduler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

func (w *world) append(g lessor.Grant, key, data string) (lessor.JournalAnswer, error) {
	return w.Append(w.ctx, anybody, g.Lease.ID, lessor.JournalAppend{
		WorkerID: &g.Lease.WorkerID,
		Entries:  []lessor.JournalAsk{{Key: &key, Kind: new("step"), Data: json.RawMessage(data)}},
	})
}

func (w *world) mustAppend(g lessor.Grant, key string, number int) {
	w.t.Helper()
	a, err := w.append(g, key, `{"a": 1.0}`)
	if err != nil || !slices.Equal(a.Numbers, []int{number}) || !a.OK {
		w.t.Fatalf("append %s: %+v, %v; want number %d", key, a, err, number)
	}
}

// keys returns the keys of a job's journal, read in pages of two.
func (w *world) keys(id lessor.JobID) (keys []string) {
	w.t.Helper()
	for after := ""; ; {
		page, next, err := w.Journal(w.ctx, anybody, id, 2, after)
		if err != nil {
			w.t.Fatalf("journal: %v", err)
		}
		for _, e := range page {
			keys = append(keys, e.Key)
			if e.N != len(keys) {
				w.t.Fatalf("entry %d of the journal has number %d", len(keys), e.N)
			}
		}
		if after = next; next == "" {
			return keys
		}
	}
}

// TestJournalGoesOnOverAttempts: numbers have no gaps over attempts and nodes, a key has one entry, however often it
// is sent, and each grant says how many entries there are.
func TestJournalGoesOnOverAttempts(t *testing.T) {
	onEveryStore(t, func(t *testing.T, turn func() *world) {
		job := turn().submit(nil)
		var want []string
		for n := range 4 {
			g := turn().leaseSoon("worker-1")
			if g.Job.JournalEntries != 3*n || g.Job.Attempt != 1 {
				t.Fatalf("grant %d says %d entries, attempt %d; want %d, 1", n, g.Job.JournalEntries, g.Job.Attempt,
					3*n)
			}
			for i := range 3 {
				key := fmt.Sprintf("%d-%d", n, i)
				want = append(want, key)
				turn().mustAppend(g, key, len(want))
				turn().mustAppend(g, key, len(want))
				turn().mustAppend(g, "0-0", 1)
			}
			if _, err := turn().append(g, "0-0", `{"a":1}`); lessor.CodeOf(err) != lessor.CodeConflict {
				t.Fatalf("the same key with other data: %v, want a conflict", err)
			}
			turn().release(g, lessor.Release{})
			if _, err := turn().append(g, "late", "1"); lessor.CodeOf(err) != lessor.CodeLeaseNotFound {
				t.Fatalf("append under a lease that is over: %v, want lease_not_found", err)
			}
		}
		if got := turn().keys(job.ID); !slices.Equal(got, want) {
			t.Errorf("the journal has %v, want %v", got, want)
		}
	})
}

// TestAppendsShareCommits: appends that arrive while a commit is under way share the next one, also two with one
// key.
func TestAppendsShareCommits(t *testing.T) {
	store := &gatedStore{}
	inWrappedWorld(t, func(s scheduler.Store) scheduler.Store { store.Store = s; return store },
		func(t *testing.T, w *world) {
			job := w.submit(nil)
			g := w.lease("worker-1", nil)
			gate := make(chan struct{})
			store.gate.Store(&gate)
			var all sync.WaitGroup
			all.Go(func() { w.submit(nil) })
			synctest.Wait() // the commit of the submission is held; what comes now is the next batch
			w.stats = nil
			for n := range 40 {
				all.Go(func() {
					if _, err := w.append(g, fmt.Sprint(n/2), "1"); err != nil { // each key twice
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			close(gate)
			all.Wait()
			if n := len(w.keys(job.ID)); n != 20 || len(w.stats) != 2 {
				t.Errorf("40 appends made %d entries in %d commits, want 20 in one, after that of the submission", n,
					len(w.stats))
			}
		})
}

// TestJournalSurvivesEveryKill: the attempts before one that appended do not count, so a job that makes progress
// reaches its end although its workers are killed again and again.
func TestJournalSurvivesEveryKill(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		for n := range 30 {
			g := w.leaseSoon("worker-1")
			w.mustAppend(g, fmt.Sprint(n), n+1)
			if n%7 == 3 {
				w.restart(time.Second)
			}
			time.Sleep(3 * time.Minute) // nobody sends a heartbeat
		}
		if got := w.lease("worker-1", nil).Job; got.Attempt != 2 || got.JournalEntries != 30 {
			t.Errorf("attempt %d of a job with %d entries, want 2 and 30", got.Attempt, got.JournalEntries)
		}
		if n := len(w.keys(job.ID)); n != 30 {
			t.Errorf("the journal has %d entries, want 30", n)
		}
	})
}

// TestJournalOutlivesTheEndOfItsJob: a job that failed for good and is retried or resumed goes on with its journal. One
// that is resumed from the start has none.
func TestJournalOutlivesTheEndOfItsJob(t *testing.T) {
	onEveryStore(t, func(t *testing.T, turn func() *world) {
		job := turn().submit(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
		g := turn().leaseSoon("worker-1")
		const entries = 120 // more than are copied at a time
		for n := range entries {
			turn().mustAppend(g, fmt.Sprint(n), n+1)
		}
		turn().mustComplete(g, "failed")
		if _, err := turn().Retry(turn().ctx, anybody, job.ID); err != nil {
			t.Fatal(err)
		}
		goesOn := func(id lessor.JobID, has int) {
			t.Helper()
			g := turn().leaseSoon("worker-1")
			if g.Job.ID != id || g.Job.JournalEntries != has {
				t.Fatalf("job %s has %d entries, want %s and %d", g.Job.ID, g.Job.JournalEntries, id, has)
			}
			if has > 0 {
				turn().mustAppend(g, "7", 8) // known
			}
			turn().mustAppend(g, "more", has+1)
			if keys := turn().keys(id); len(keys) != has+1 {
				t.Errorf("the journal has %d entries, want %d", len(keys), has+1)
			}
			turn().mustComplete(g, "failed")
		}
		goesOn(job.ID, entries)
		for _, fromCheckpoint := range []bool{true, false} {
			id, err := turn().resume(job.ID, fromCheckpoint)
			if err != nil {
				t.Fatal(err)
			}
			if has := entries + 1; fromCheckpoint {
				g := turn().leaseSoon("worker-1")
				if g.Job.ID != id || g.Job.JournalEntries != has {
					t.Fatalf("the resumed job %s has %d entries, want %s and %d", g.Job.ID, g.Job.JournalEntries, id,
						has)
				}
				turn().mustAppend(g, "more", has)
				turn().mustAppend(g, "another", has+1)
				turn().mustComplete(g, "failed")
				job.ID = id
				continue
			}
			goesOn(id, 0)
		}
	})
}

// TestFullJournalRefuses: the limit of a job counts all its entries, and a refused append changes nothing.
func TestFullJournalRefuses(t *testing.T) {
	cfg := config()
	cfg.Journal.Entry, cfg.Journal.Job = 1000, 3000
	inWorld(t, cfg, func(t *testing.T, w *world) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		data := `"` + strings.Repeat("x", 900) + `"`
		for n := range 3 {
			if _, err := w.append(g, fmt.Sprint(n), data); err != nil {
				t.Fatal(err)
			}
		}
		for _, again := range []bool{false, true} {
			if _, err := w.append(g, "3", data); lessor.CodeOf(err) != lessor.CodePayloadTooLarge {
				t.Fatalf("append to a full journal: %v, want payload_too_large", err)
			}
			if _, err := w.append(g, "2", data); err != nil {
				t.Fatalf("a known entry of a full journal: %v", err)
			}
			if !again {
				w.release(g, lessor.Release{})
				g = w.lease("worker-1", nil)
			}
		}
		if n := len(w.keys(job.ID)); n != 3 {
			t.Errorf("the journal has %d entries, want 3", n)
		}
	})
}

// TestJournalOfAnotherTenantIsUnknown: it can neither be read nor appended to.
func TestJournalOfAnotherTenantIsUnknown(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		owner, other := lessor.TenantID{UUID: lessor.UUID{15: 1}}, lessor.TenantID{UUID: lessor.UUID{15: 2}}
		job := w.submit(func(s *lessor.Submission) { s.TenantID = new(owner.String()) })
		g := w.lease("worker-1", nil)
		w.mustAppend(g, "a", 1)
		caller := scheduler.Caller{Actor: "other", Tenant: &other}
		_, _, err := w.Journal(w.ctx, caller, job.ID, 10, "")
		if lessor.CodeOf(err) != lessor.CodeJobNotFound {
			t.Errorf("another tenant reads the journal: %v, want job_not_found", err)
		}
		_, err = w.Append(w.ctx, caller, g.Lease.ID, lessor.JournalAppend{
			WorkerID: &g.Lease.WorkerID, Entries: []lessor.JournalAsk{{Key: new("b")}},
		})
		if lessor.CodeOf(err) != lessor.CodeLeaseNotFound {
			t.Errorf("another tenant appends: %v, want lease_not_found", err)
		}
	})
}
