package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lessor"
)

// The shape of the load. The ttl covers two callers' patience, so that a worker can turn to another node in time.
const (
	loadTTL     = 3 * time.Second
	beatEvery   = loadTTL / 6
	repeatAfter = 50 * time.Millisecond
	loadUnits   = 30
	loadCap     = 12 // leases of one tenant
	loadWorkers = 16
	backlog     = 60 // jobs that may wait before submitters do
)

// loadSettings are the settings of the servers.
func loadSettings() []string {
	return []string{
		"LESSOR_LEASE_TTL=" + loadTTL.String(), "LESSOR_LEASE_SWEEP=200ms", "LESSOR_CAPACITY_BUSY=0",
		fmt.Sprintf("LESSOR_CAPACITY_TOTAL_UNITS=%d", loadUnits), "LESSOR_CAPACITY_RESERVE_UNITS=0",
		fmt.Sprintf("LESSOR_TENANTS_DEFAULT_CAP=%d", loadCap), "LESSOR_JOBS_BACKOFF_FIRST=20ms",
		"LESSOR_JOBS_BACKOFF_MAX=200ms",
	}
}

var loadTenants = []string{
	"00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b",
	"00000000-0000-0000-0000-000000000000",
}

// load is submitters and workers over HTTP, whose every call is in a history.
type load struct {
	t       *testing.T
	h       *history
	servers []string
	// outagesAreFree says that no lease of a worker that sends heartbeats all along may end.
	outagesAreFree atomic.Bool
	proxy          *proxy // nil = the load calls the servers themselves

	submitting, working context.CancelFunc
	submitters, workers sync.WaitGroup
	acked               atomic.Int64
	completed           atomic.Int64
}

// startLoad starts the load, which runs until finish.
func startLoad(t *testing.T, servers ...*server) *load {
	t.Helper()
	l := &load{t: t, h: newHistory()}
	for _, s := range servers {
		l.servers = append(l.servers, s.addr)
	}
	l.start()
	return l
}

// startLoadThrough starts the load, which calls a server through a proxy.
func startLoadThrough(t *testing.T, p *proxy) *load {
	t.Helper()
	l := &load{t: t, h: newHistory(), servers: []string{p.addr()}, proxy: p}
	l.start()
	return l
}

func (l *load) start() {
	l.outagesAreFree.Store(true)
	submitting, stopSubmitting := context.WithCancel(l.t.Context())
	working, stopWorking := context.WithCancel(l.t.Context())
	l.submitting, l.working = stopSubmitting, stopWorking
	for i := range 4 {
		l.submitters.Go(func() { l.submit(submitting, newCaller(i, l.h, l.servers)) })
	}
	for i := range loadWorkers {
		l.workers.Go(func() { l.work(working, newCaller(10+i, l.h, l.servers)) })
	}
	l.t.Cleanup(l.stop)
}

func (l *load) stop() {
	l.submitting()
	l.submitters.Wait()
	l.working()
	l.workers.Wait()
}

// more waits until n more jobs were acknowledged and completed.
func (l *load) more(n int64) {
	l.t.Helper()
	acked, completed := l.acked.Load()+n, l.completed.Load()+n
	for deadline := time.Now().Add(time.Minute); l.acked.Load() < acked || l.completed.Load() < completed; {
		if time.Now().After(deadline) {
			l.h.mu.Lock()
			odd := strings.Join(l.h.odd[:min(3, len(l.h.odd))], "\n")
			l.h.mu.Unlock()
			l.t.Fatalf("%d jobs acknowledged and %d completed a minute later, want %d and %d\n%s",
				l.acked.Load(), l.completed.Load(), acked, completed, odd)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// submit submits jobs of all kinds, each until it is acknowledged, and some of them twice.
func (l *load) submit(ctx context.Context, c *caller) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%d-%d", c.id, n)
		s := lessor.Submission{
			Type: new([]string{"one", "two", fmt.Sprintf("new%d", n/20)}[rand.IntN(3)]), IdempotencyKey: &key,
			TenantID: &loadTenants[rand.IntN(3)], MaxAttempts: new(int64(50)), RequestedUnits: new(rand.Int64N(4) + 1),
		}
		switch rand.IntN(4) {
		case 0:
			s.LockKey = new(fmt.Sprintf("lock%d", rand.IntN(3)))
		case 1:
			if l.h.stepped.Load() {
				break // a run_at is wall time and stays
			}
			s.DelayMS = new(rand.Int64N(300))
		}
		for again := rand.IntN(10) == 0; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			a := l.submitOnce(ctx, c, s)
			if a == done || a == known {
				if !again {
					l.acked.Add(1)
					break
				}
				again = false
			}
		}
		for time.Sleep(10 * time.Millisecond); l.acked.Load()-l.completed.Load() > backlog && ctx.Err() == nil; {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func (l *load) submitOnce(ctx context.Context, c *caller, s lessor.Submission) answer {
	var job lessor.Job
	one := call{caller: c.id, key: *s.IdempotencyKey, verb: submit, begin: l.h.now()}
	one.answer, _ = c.do(ctx, 0, "POST", "/api/system/scheduler/jobs", s, &job)
	if one.end = l.h.now(); one.answer == done || one.answer == known {
		one.job = job.ID.String()
	}
	l.h.add(one)
	return one.answer
}

// granted is the answer to a request, in either form.
type granted struct {
	Denied bool           `json:"denied"`
	Grants []lessor.Grant `json:"grants"`
}

// work takes leases and ends them in every way.
func (l *load) work(ctx context.Context, c *caller) {
	name := fmt.Sprintf("worker-%d", c.id)
	for n := 0; ctx.Err() == nil; n++ {
		ask := lessor.LeaseRequest{
			WorkerID: &name, WaitMS: new(int64(500)), MaxLeases: new(rand.Int64N(2) + 1),
			RequestID: new(fmt.Sprintf("%s-%d", name, n)),
		}
		var got granted
		asked := time.Duration(0) // when the request was sent whose answer was lost first
		for ctx.Err() == nil {    // the same request again after a lost answer
			begin := l.h.now()
			a, _ := c.do(ctx, 500*time.Millisecond, "POST", "/api/system/scheduler/leases/request", ask, &got)
			for _, g := range got.Grants {
				l.h.add(call{
					caller: c.id, key: *g.Job.IdempotencyKey, verb: grant, answer: done, begin: begin, end: l.h.now(),
					job: g.Job.ID.String(), lease: g.Lease.ID.String(), fence: g.Lease.Fence,
				})
			}
			if a == known {
				break
			}
			if asked == 0 {
				asked = begin
			}
			time.Sleep(repeatAfter)
		}
		if asked == 0 {
			asked = l.h.now()
		}
		var all sync.WaitGroup
		for i, g := range got.Grants {
			own := newCaller(c.id*10+i, l.h, l.servers)
			all.Go(func() { l.hold(ctx, own, name, g, asked) })
		}
		all.Wait()
	}
}

// hold keeps a lease for a while, or falls silent, and then ends it. The lease may have been granted as early as asked.
func (l *load) hold(ctx context.Context, c *caller, name string, g lessor.Grant, asked time.Duration) {
	kind := rand.IntN(100)
	if kind < 1 { // it falls silent, and tries to end its lease when that is over
		time.Sleep(loadTTL + time.Second)
		l.end(ctx, c, name, g, complete)
		return
	}
	long := time.Duration(rand.IntN(100)) * time.Millisecond
	if kind < 12 {
		long = time.Duration(rand.Int64N(int64(loadTTL * 3 / 2)))
	}
	if !l.keep(ctx, c, name, g, asked, l.h.now()+long) {
		return
	}
	switch {
	case kind < 6:
		l.end(ctx, c, name, g, release)
	case kind < 14:
		l.end(ctx, c, name, g, fail)
	default:
		l.end(ctx, c, name, g, complete)
	}
}

// keep sends heartbeats until a time, the first when the grant says, and repeats one that failed, as a worker does. It
// returns false if the lease is over.
func (l *load) keep(ctx context.Context, c *caller, name string, g lessor.Grant, asked, until time.Duration) bool {
	tried, pause := asked, time.Duration(0) // pause is the longest time without a try: no fault of the server
	accepted, wait := asked, min(beatEvery, time.Duration(g.Lease.HeartbeatAfterMS)*time.Millisecond)
	var failed []call // since the last that was accepted
	for l.h.now() < until && ctx.Err() == nil {
		time.Sleep(min(wait, until-l.h.now()))
		one := l.one(c, g, beat)
		pause = max(pause, one.begin-tried)
		var ok lessor.HeartbeatAnswer
		path := "/api/system/scheduler/leases/" + one.lease + "/heartbeat"
		var r refusal
		one.answer, r = c.do(ctx, 0, "POST", path, lessor.Heartbeat{WorkerID: &name}, &ok)
		one.reason, one.end, one.cut = r.Reason, l.h.now(), r == (refusal{})
		tried = one.end
		l.h.add(one)
		switch one.answer {
		case known:
			accepted, pause, wait, failed = one.begin, 0, beatEvery, nil
		case refused:
			l.endedUnderWorker(one, accepted, pause, failed)
			return false
		default:
			wait, failed = repeatAfter, append(failed, one)
		}
	}
	return true
}

// shortGap is the longest time without service that a lease's ttl must cover (SPEC 2).
const shortGap = time.Second

// endedUnderWorker judges the end of a lease whose worker tried to send heartbeats all along. It can only have expired,
// and not within the ttl of the last accepted heartbeat, unless the store has gone back. A later end is bad luck if
// nodes served meanwhile, and only not this worker, because each node that it called died before it answered.
func (l *load) endedUnderWorker(one call, accepted, pause time.Duration, failed []call) {
	if lived := one.end - accepted; (lived < loadTTL || one.reason != "expired") && !l.h.wentBack.Load() {
		l.h.violation("lease %.8s of job %s ended (%q) %v after its last accepted heartbeat",
			one.lease, one.key, one.reason, lived)
		return
	}
	if !l.outagesAreFree.Load() {
		return
	}
	gap := l.h.longestGap(accepted, one.begin)
	answered := slices.ContainsFunc(failed, func(c call) bool { return !c.cut })
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	switch {
	case pause > loadTTL/3:
		l.h.excess++
	case gap <= shortGap && !answered:
		l.h.missed++
	default:
		l.h.odd = append(l.h.odd, fmt.Sprintf(
			"%v: lease %.8s of job %s ended, although its worker sent heartbeats all along:"+
				" one was accepted at %v, then %v; for %v no call of anybody was accepted",
			one.end, one.lease, one.key, accepted, failed, gap))
	}
}

func (l *load) one(c *caller, g lessor.Grant, v verb) call {
	return call{
		caller: c.id, key: *g.Job.IdempotencyKey, verb: v, lease: g.Lease.ID.String(), begin: l.h.now(),
	}
}

// end ends a lease, repeating until the server accepts or refuses.
func (l *load) end(ctx context.Context, c *caller, name string, g lessor.Grant, v verb) {
	path := "/api/system/scheduler/leases/" + g.Lease.ID.String() + "/complete"
	var body any = lessor.Completion{WorkerID: &name, Status: new("completed")}
	switch v {
	case release:
		path = "/api/system/scheduler/leases/" + g.Lease.ID.String() + "/release"
		body = lessor.Release{WorkerID: &name}
	case fail:
		body = lessor.Completion{WorkerID: &name, Status: new("failed"), Error: new("by chance")}
	}
	for ctx.Err() == nil {
		one := l.one(c, g, v)
		var r refusal
		one.answer, r = c.do(ctx, 0, "POST", path, body, &struct{}{})
		one.reason, one.end = r.Reason, l.h.now()
		l.h.add(one)
		if one.answer == known && v == complete || one.reason == "completed" {
			l.completed.Add(1)
		}
		if one.answer == known || one.answer == refused {
			return
		}
		time.Sleep(repeatAfter)
	}
}
