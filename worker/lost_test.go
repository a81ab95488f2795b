package worker_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/worker"
)

// TestTenThousandLostAnswers lets the server commit every call and drops two of three answers, to submitters and
// workers alike. Every job is stored once and run once, and nothing is left leased.
func TestTenThousandLostAnswers(t *testing.T) {
	const wanted, ttl = 10_000, 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s := wideServer(t, 100, ttl)
		var dropped, turn atomic.Int64
		var mended atomic.Bool // a worker that stops waits for an answer for some seconds only
		lose := func(string) bool {
			if turn.Add(1)%3 == 0 || mended.Load() {
				return false
			}
			dropped.Add(1)
			return true
		}
		lossy := over(t, &route{RoundTripper: s.Transport(), lose: lose})
		var mu sync.Mutex
		runs := map[lessor.JobID]int{}
		for i := range 4 {
			w := s.worker(worker.Config{Client: lossy, ID: fmt.Sprintf("worker-%d", i), Concurrency: 3})
			worker.Handle(w, "once", func(ctx context.Context, job *worker.Job[order]) (any, error) {
				mu.Lock()
				runs[job.ID]++
				mu.Unlock()
				return nil, job.SaveCheckpoint(ctx, "seen")
			})
			s.Run(w)
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := 0; dropped.Load() < wanted; n++ {
					key := fmt.Sprintf("%d-%d", i, n)
					for {
						_, err := lossy.Submit(t.Context(), "once", nil, &lessor.SubmitOptions{IdempotencyKey: key})
						if err == nil {
							break
						}
					}
				}
			})
		}
		all.Wait()
		for s.unfinished() > 0 {
			s.Advance(ttl)
		}
		mended.Store(true)
		jobs := 0
		for job, err := range s.Client().AllJobs(t.Context(), lessor.JobFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			jobs++
			if job.State != lessor.Completed || job.Attempt != 1 || runs[job.ID] != 1 {
				t.Errorf("a job is %s after attempt %d and ran %d times, want completed after 1, once",
					job.State, job.Attempt, runs[job.ID])
			}
		}
		st, err := s.Client().Status(t.Context())
		if err != nil || st.LeasedUnits != 0 || st.ActiveLeases != 0 {
			t.Errorf("%d units of %d leases are still taken (%v), want none", st.LeasedUnits, st.ActiveLeases, err)
		}
		t.Logf("%d answers lost, %d jobs", dropped.Load(), jobs)
		if dropped.Load() < wanted || jobs != len(runs) || jobs < 500 {
			t.Errorf("%d lost answers, %d jobs of which %d ran: too few to say anything, or some did not run",
				dropped.Load(), jobs, len(runs))
		}
	})
}
