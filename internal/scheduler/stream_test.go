package scheduler_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/scheduler"
)

// burst submits more jobs of a tenant than the stream remembers.
func (w *world) burst(tenant *lessor.TenantID) {
	w.t.Helper()
	var all []lessor.Submission
	for range 1000 {
		all = append(all, lessor.Submission{Type: new("burst")})
	}
	for range 20 {
		if _, err := w.SubmitBatch(w.ctx, scheduler.Caller{Actor: "tester", Tenant: tenant}, all); err != nil {
			w.t.Fatal(err)
		}
	}
	synctest.Wait()
}

func (w *world) subscribe(ctx context.Context, c scheduler.Caller, after uint64) *scheduler.Follower {
	w.t.Helper()
	f, err := w.Subscribe(ctx, c, after)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// TestSlowFollowerGetsAGap lets a follower take nothing during a burst. Another tenant, which the burst does not
// concern, misses nothing.
func TestSlowFollowerGetsAGap(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		slow := w.subscribe(t.Context(), anybody, 0)
		other := w.subscribe(t.Context(), scheduler.Caller{Actor: "b", Tenant: &tenantB}, 0)
		w.burst(&tenantA)
		own, err := w.Submit(w.ctx, scheduler.Caller{Actor: "b", Tenant: &tenantB}, lessor.Submission{Type: new("own")})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := slow.Take(math.MaxInt)
		if len(got) < 2 || !got[0].Gap || got[len(got)-1].Event.JobID != own.Job.ID {
			t.Fatalf("%d entries, want a gap first and the newest entry last", len(got))
		}
		for i, e := range got[2:] {
			if e.Gap || e.ID != got[i+1].ID+1 {
				t.Fatalf("entry %d comes after entry %d", e.ID, got[i+1].ID)
			}
		}
		if got := other.Take(math.MaxInt); len(got) != 1 || got[0].Event.JobID != own.Job.ID {
			t.Errorf("the other tenant gets %+v, want the submission of its job alone", got)
		}
	})
}

// TestFollowerThatComesBack leaves for a short and then for a long time.
func TestFollowerThatComesBack(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		last := uint64(0)
		for _, c := range []struct {
			away time.Duration
			gap  bool
		}{{0, false}, {30 * time.Second, false}, {2 * time.Minute, true}} {
			w.submit(nil) // the follower is away
			time.Sleep(c.away)
			ctx, leave := context.WithCancel(t.Context())
			f := w.subscribe(ctx, anybody, last)
			now := w.submit(nil)
			synctest.Wait()
			got := f.Take(math.MaxInt)
			if n := len(got); n == 0 || got[0].Gap != c.gap || got[n-1].Event.JobID != now.ID {
				t.Errorf("away for %v: %+v; want a gap: %v, and the newest job", c.away, got, c.gap)
			}
			last = got[len(got)-1].ID
			leave()
			synctest.Wait()
		}
	})
}

// TestFollowerSeesWhatTicksDo follows a definition whose ticks submit a job and cancel the one before.
func TestFollowerSeesWhatTicksDo(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		f := w.subscribe(t.Context(), anybody, 0)
		w.put(interval("sync", 10, func(e *lessor.Envelope) { e.Overlap = new("cancelPrevious") }))
		time.Sleep(25 * time.Second)
		synctest.Wait()
		var got []lessor.State
		for _, e := range f.Take(math.MaxInt) {
			got = append(got, e.Event.To)
			if e.Gap || e.Event.TraceID == "" || e.Event.TenantID != tenantA {
				t.Errorf("the follower gets %+v", e)
			}
		}
		want := []lessor.State{lessor.Queued, lessor.Cancelled, lessor.Queued}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("entries of the ticks (-want +got):\n%s", d)
		}
	})
}

// TestFollowerThatJoinsDuringACommit joins while a commit that had no follower is pending. Its entries were not made.
func TestFollowerThatJoinsDuringACommit(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		commits.hold(nil, false)
		first := w.submitting()
		f := w.subscribe(t.Context(), anybody, 0)
		if got := f.Take(math.MaxInt); len(got) > 0 {
			t.Errorf("before the commit the follower gets %+v", got)
		}
		commits.finishAll()
		<-first
		second := w.submit(nil)
		synctest.Wait()
		got := f.Take(math.MaxInt)
		if len(got) != 2 || !got[0].Gap || got[1].Event.JobID != second.ID {
			t.Errorf("the follower gets %+v, want a gap and the second job", got)
		}
	})
}
