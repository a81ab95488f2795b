package chaos

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/client"
)

// leasesPerMiss is how many leases there are at least for one that is lost because every node that its worker called
// for a whole ttl died at once.
const leasesPerMiss = 10_000

// finish ends the load when every job has ended, and checks the whole history.
func (l *load) finish() {
	l.t.Helper()
	l.submitting()
	l.submitters.Wait()
	c := l.reader()
	jobs := l.drain(c)
	l.working()
	l.workers.Wait()
	l.readAll(c, jobs)
	l.h.linearizable(l.t)
	l.sums(c, jobs)
	for _, text := range l.h.odd {
		l.t.Error(text)
	}
	lost := l.h.count(submit, unknown) + l.h.count(beat, unknown) + l.h.count(complete, unknown)
	grants := l.h.count(grant, done)
	l.t.Logf("%d calls about %d jobs: %d grants, %d lost answers, %d leases lost by pauses of workers, %d by bad luck",
		len(l.h.calls), len(jobs), grants, lost, l.h.excess, l.h.missed)
	if l.h.missed > 1+grants/leasesPerMiss {
		l.t.Errorf("%d of %d leases were lost because nodes died: too many for bad luck", l.h.missed, grants)
	}
}

func (l *load) reader() *client.Client {
	l.t.Helper()
	c, err := client.New(client.Config{
		Server: "http://" + strings.Join(l.servers, ",http://"), Timeout: 10 * time.Second,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(c.Close)
	return c
}

// drain waits until every job has ended, and returns the jobs by their keys.
func (l *load) drain(c *client.Client) map[string]lessor.Job {
	l.t.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		jobs, open, err := list(l.t.Context(), c)
		if err == nil && open == nil {
			return jobs
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("not every job has ended: %+v, %v", open, err)
		}
	}
}

// list returns all jobs of the load by their keys, and one that has not ended.
func list(ctx context.Context, c *client.Client) (jobs map[string]lessor.Job, open *lessor.Job, err error) {
	jobs = map[string]lessor.Job{}
	for j, err := range c.AllJobs(ctx, lessor.JobFilter{Limit: 1000}) {
		if err != nil {
			return nil, nil, err
		}
		if j.IdempotencyKey == nil {
			continue // not of the load
		}
		key := *j.IdempotencyKey
		if _, twice := jobs[key]; twice {
			return nil, nil, fmt.Errorf("key %s has two jobs", key)
		}
		if jobs[key] = j; j.State != lessor.Completed {
			open = &j
		}
	}
	return jobs, open, nil
}

// readAll adds a last read of every job to the history: what was acknowledged must be there.
func (l *load) readAll(c *client.Client, jobs map[string]lessor.Job) {
	for key := range l.h.byJob() {
		at := l.h.now()
		one := call{caller: 9, key: key, verb: read, answer: refused, begin: at, end: at + 1}
		if j, is := jobs[key]; is {
			one.answer, one.state, one.job = known, j.State, j.ID.String()
		}
		l.h.add(one)
	}
	if n := len(l.h.byJob()); len(jobs) > n {
		l.t.Errorf("there are %d jobs, and %d were submitted", len(jobs), n)
	}
}

// held is the time of a lease in the records.
type held struct {
	job      lessor.Job
	from, to lessor.Instant
}

// sums checks the records of all jobs: attempts are exact, fences rise, every grant that a caller saw is there, and at
// no time was more leased than units, caps and locks allow.
func (l *load) sums(c *client.Client, jobs map[string]lessor.Job) {
	l.t.Helper()
	seen := map[string]map[string]int64{} // the fences of the leases that callers saw, by key
	for key, calls := range l.h.byJob() {
		seen[key] = map[string]int64{}
		for _, one := range calls {
			if one.verb == grant {
				seen[key][one.lease] = one.fence
			}
		}
	}
	var mu sync.Mutex
	var times []held
	var all sync.WaitGroup
	keys := slices.Collect(maps.Keys(jobs))
	for part := range 8 {
		all.Go(func() {
			for i := part; i < len(keys); i += 8 {
				some := l.record(c, jobs[keys[i]], seen[keys[i]])
				mu.Lock()
				times = append(times, some...)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(l.h.lost) == 0 && !l.h.stepped.Load() { // of what was lost there is no record
		checkBounds(l.t, times)
	}
}

// record replays the record of one job, and returns the times of its leases.
func (l *load) record(c *client.Client, j lessor.Job, seen map[string]int64) (times []held) {
	fence, attempt, completions := int64(0), 0, 0
	counted := true // whether the next lease has the next attempt
	var last lessor.State
	for e, err := range c.AllEvents(l.t.Context(), j.ID) {
		if err != nil {
			l.t.Error(err)
			return nil
		}
		if e.To == lessor.Leased {
			if counted {
				attempt++
			}
			if *e.Fence <= fence || e.Attempt != attempt {
				l.t.Errorf("job %s: fence %d after %d, attempt %d, want %d", j.ID, *e.Fence, fence, e.Attempt, attempt)
			}
			if f, was := seen[e.LeaseID.String()]; was && f != *e.Fence {
				l.t.Errorf("job %s: a worker saw fence %d, the record has %d", j.ID, f, *e.Fence)
			}
			delete(seen, e.LeaseID.String())
			times, fence = append(times, held{job: j, from: e.At}), *e.Fence
		}
		if wasHeld, is := last == lessor.Leased || last == lessor.Running, isHeld(e.To); wasHeld && !is {
			times[len(times)-1].to = e.At
			counted = e.Reason != "released" && e.Reason != "client_gone"
		}
		if e.To == lessor.Completed {
			completions++
		}
		last = e.To
	}
	if completions != 1 || last != j.State || j.Attempt != attempt {
		l.t.Errorf("job %s is %s in attempt %d; its record ends %s in attempt %d with %d completions", j.ID, j.State,
			j.Attempt, last, attempt, completions)
	}
	if len(seen) > 0 && len(l.h.lost) == 0 {
		l.t.Errorf("job %s: its record lacks the leases %v, which workers had", j.ID, seen)
	}
	return times
}

func isHeld(s lessor.State) bool { return s == lessor.Leased || s == lessor.Running }

// checkBounds goes through all leases in the order of time.
func checkBounds(t *testing.T, times []held) {
	t.Helper()
	type change struct {
		at   lessor.Instant
		sign int
		job  lessor.Job
	}
	var changes []change
	for _, h := range times {
		changes = append(changes, change{h.from, 1, h.job}, change{h.to, -1, h.job})
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.sign, b.sign))
	})
	units := 0
	tenants, locks := map[lessor.TenantID]int{}, map[string]int{}
	for _, c := range changes {
		units += c.sign * c.job.RequestedUnits
		if units > loadUnits {
			t.Errorf("at %s %d units were leased at once, want at most %d", c.at, units, loadUnits)
			logHeld(t, times, c.at)
		}
		tenants[c.job.TenantID] += c.sign
		if !c.job.TenantID.IsZero() && tenants[c.job.TenantID] > loadCap {
			t.Errorf("at %s tenant %s had more than %d leases", c.at, c.job.TenantID, loadCap)
		}
		if c.job.LockKey == nil {
			continue
		}
		lock := c.job.TenantID.String() + *c.job.LockKey
		if locks[lock] += c.sign; locks[lock] > 1 {
			t.Errorf("at %s two jobs held lock %s", c.at, lock)
		}
	}
}

// logHeld shows the leases at an instant, and those that ended just before it.
func logHeld(t *testing.T, times []held, at lessor.Instant) {
	t.Helper()
	for _, h := range times {
		if h.from <= at && h.to.Add(100*time.Millisecond) >= at {
			t.Logf("%s: %d units from %s to %s", h.job.ID, h.job.RequestedUnits, h.from, h.to)
		}
	}
}
