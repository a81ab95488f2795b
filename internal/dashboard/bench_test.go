package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/internal/httpapi"
)

// fill queues jobs for many tenants.
func (s *server) fill(jobs, tenants int) {
	s.t.Helper()
	const batch = 1000
	var all sync.WaitGroup
	for part := range 4 { // so that a commit has more than one batch
		all.Go(func() {
			for from := part * batch; from < jobs; from += 4 * batch {
				subs := make([]lessor.Submission, min(batch, jobs-from))
				for i := range subs {
					subs[i] = lessor.Submission{
						Type:     new("bench"),
						TenantID: new(fmt.Sprintf("018f0000-0000-7000-8000-%012x", 1+(from+i)%tenants)),
					}
				}
				if _, err := s.scheduler.SubmitBatch(s.t.Context(), tester, subs); err != nil {
					s.t.Errorf("submit: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	if st, err := s.scheduler.Status(s.t.Context(), tester); err != nil || st.QueueDepth.Normal != jobs {
		s.t.Fatalf("%d jobs are queued, want %d: %v", st.QueueDepth.Normal, jobs, err)
	}
}

// show renders a page inside the server, without a network.
func (s *server) show(path, live string) int {
	r := httptest.NewRequest(http.MethodGet, s.url+path, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	if live != "" {
		r.Header.Set(liveHeader, live)
	}
	w := httptest.NewRecorder()
	s.Serve(w, r, httpapi.Visitor{Local: true})
	return w.Code
}

// BenchmarkPages shows that the cost of a page does not grow with the amount of data. It measures the server's time.
func BenchmarkPages(b *testing.B) {
	for _, size := range []struct{ jobs, tenants, ended int }{
		{1000, 10, 0}, {1_000_000, 10_000, 0}, {1000, 10, 200_000},
	} {
		s := start(b)
		s.live(size.ended)
		s.fill(size.jobs, size.tenants)
		for range 20 {
			s.lease("worker", "bench")
		}
		for _, path := range []string{
			"/", "/jobs", "/jobs?type=bench&state=queued", "/leases", "/workers", "/runs", "/tenants", "/schedules",
		} {
			b.Run(fmt.Sprintf("queued=%d,ended=%d%s", size.jobs, size.ended, path), func(b *testing.B) {
				for b.Loop() {
					if status := s.show(path, ""); status != http.StatusOK {
						b.Fatalf("%s: %d", path, status)
					}
				}
			})
		}
	}
}

// BenchmarkLifecycles shows the cost of open dashboards for the scheduler: jobs are submitted, leased and completed
// without a page open, and with 200. The pages are requested inside the process, without browsers.
func BenchmarkLifecycles(b *testing.B) {
	for _, dashboards := range []int{0, 200} {
		b.Run(fmt.Sprintf("dashboards=%d", dashboards), func(b *testing.B) {
			s := start(b)
			ctx, stop := context.WithCancel(b.Context())
			var looking sync.WaitGroup
			for i := range dashboards {
				looking.Go(func() { s.follow(ctx, []string{"/", "/jobs", "/leases", "/workers"}[i%4]) })
			}
			b.ResetTimer()
			before := used()
			s.live(b.N)
			b.StopTimer()
			b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "cpu-us/lifecycle")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lifecycles/s")
			stop()
			looking.Wait()
		})
	}
}

// BenchmarkSecondOfDashboards measures one second of 200 open pages in processor time: each page requests its part
// once, and the shared parts are rendered again.
func BenchmarkSecondOfDashboards(b *testing.B) {
	s := start(b)
	s.fill(10_000, 100)
	for range 20 {
		s.lease("worker", "bench")
	}
	before := used()
	for b.Loop() {
		s.cache.mu.Lock()
		s.cache.all, s.cache.bytes = nil, 0
		s.cache.mu.Unlock()
		for i := range 200 {
			if status := s.show([]string{"/", "/jobs", "/leases", "/workers"}[i%4], "1"); status != http.StatusOK {
				b.Fatalf("status %d", status)
			}
		}
	}
	b.ReportMetric(100*(used()-before).Seconds()/float64(b.N), "%-of-a-core")
}

// used returns the processor time of this process, which other processes disturb less than the clock.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// follow follows a page as a browser does, starting at a random moment.
func (s *server) follow(ctx context.Context, path string) {
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		if status := s.show(path, "1"); status != http.StatusOK {
			s.t.Errorf("%s: %d", path, status)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// live takes n jobs through their lifecycles, 20 at a time, with four workers.
func (s *server) live(n int) {
	s.t.Helper()
	const most = 20
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			worker := fmt.Sprintf("worker-%d", k)
			for done := k * most; done < n; done += 4 * most {
				subs := make([]lessor.Submission, most)
				for i := range subs {
					subs[i] = lessor.Submission{
						Type: &worker, TenantID: new(fmt.Sprintf("018f0000-0000-7000-8000-%012x", 1+k)),
					}
				}
				if _, err := s.scheduler.SubmitBatch(s.t.Context(), tester, subs); err != nil {
					s.t.Errorf("submit: %v", err)
					return
				}
				grants, denial, err := s.scheduler.Request(s.t.Context(), tester,
					lessor.LeaseRequest{WorkerID: &worker, Types: []string{worker}, MaxLeases: new(int64(most))})
				if err != nil || denial != nil {
					s.t.Errorf("request: %v %v", denial, err)
					return
				}
				ends := make([]lessor.LeaseCompletion, len(grants))
				for i, g := range grants {
					ends[i] = lessor.LeaseCompletion{LeaseID: new(g.Lease.ID.String()), Status: new("completed")}
				}
				if _, err := s.scheduler.CompleteAll(s.t.Context(), tester, worker, ends); err != nil {
					s.t.Errorf("complete: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}
