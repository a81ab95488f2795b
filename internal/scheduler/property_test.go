package scheduler_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"lessor"
	"lessor/internal/rules"
)

// books are what an outside observer knows from the answers alone. The test compares the scheduler with them.
type books struct {
	*world
	rt     *rapid.T
	jobs   []lessor.JobID
	keys   map[string]lessor.JobID
	held   map[lessor.LeaseID]*entry
	fences map[lessor.JobID]int64
	floor  lessor.Instant
	grants map[lessor.JobID]int
	given  map[lessor.JobID]int // attempts that were given back or added
}

type entry struct {
	grant lessor.Grant
	until lessor.Instant
	gone  bool // it was seen to be over
}

const (
	propertyCap    = 3
	propertyUsable = 8
)

var propertyTenants = []string{"", "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"}

// TestRandomLives drives the scheduler with random calls and checks, after each, what must always hold: P2 one key one
// job, P3 one live lease a job and rising fences, P4 a lease that is over changes nothing, P5 and P6 no expiry early or
// late, P9 attempts are bounded, P11 capacity, caps, locks and unique, and that the fold equals the tables.
func TestRandomLives(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits, cfg.TenantCap = 10, 2, propertyCap
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, ctx: t.Context(), path: t.TempDir() + "/lessor.db", cfg: cfg}
			w.start()
			defer func() { w.halt() }()
			b := &books{
				world: w, rt: rt, keys: map[string]lessor.JobID{}, held: map[lessor.LeaseID]*entry{},
				fences: map[lessor.JobID]int64{},
				grants: map[lessor.JobID]int{}, given: map[lessor.JobID]int{}, floor: now(),
			}
			steps := []func(){
				b.add, b.add, b.take, b.take, b.extend, b.extend, b.finish, b.release, b.cancel, b.retry,
				b.wait, b.wait, b.reboot,
			}
			for range 60 {
				steps[rapid.IntRange(0, len(steps)-1).Draw(rt, "step")]()
				b.check()
			}
		})
	})
}

func (b *books) add() {
	units := rapid.Int64Range(1, 4).Draw(b.rt, "units")
	sub := lessor.Submission{
		Type: new(
			rapid.SampledFrom([]string{"a", "b"}).Draw(b.rt, "type"),
		), RequestedUnits: &units, MaxAttempts: new(int64(2)),
		Unique: new(rapid.IntRange(0, 4).Draw(b.rt, "unique") == 0),
	}
	if t := rapid.SampledFrom(propertyTenants).Draw(b.rt, "tenant"); t != "" {
		sub.TenantID = &t
	}
	if l := rapid.SampledFrom([]string{"", "", "lock-1", "lock-2"}).Draw(b.rt, "lock"); l != "" {
		sub.LockKey = &l
	}
	key := rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(b.rt, "key")
	if key != "" {
		sub = lessor.Submission{Type: new("a"), IdempotencyKey: &key, MaxAttempts: new(int64(2))}
	}
	r, err := b.Submit(b.ctx, anybody, sub)
	if err != nil {
		b.t.Fatalf("submit: %v", err)
	}
	if key != "" {
		if first, known := b.keys[key]; known != r.Existing || known && first != r.Job.ID {
			b.t.Fatalf("P2: key %s gave job %v (existing %v), was %v", key, r.Job.ID, r.Existing, first)
		}
		b.keys[key] = r.Job.ID
	}
	if !r.Existing {
		b.jobs = append(b.jobs, r.Job.ID)
	}
}

func (b *books) take() {
	worker := fmt.Sprintf("w%d", rapid.IntRange(1, 2).Draw(b.rt, "worker"))
	r := lessor.LeaseRequest{WorkerID: &worker, MaxLeases: new(rapid.Int64Range(1, 3).Draw(b.rt, "leases"))}
	if rapid.Bool().Draw(b.rt, "typed") {
		r.Types = []string{"a"}
	}
	busy := b.holds(worker)
	grants, _, err := b.Request(b.ctx, anybody, r)
	if err != nil {
		b.t.Fatalf("request: %v", err)
	}
	for _, g := range grants {
		if g.Job.Unique && busy {
			b.t.Fatalf("P11: a unique job was granted to %s, which holds a lease", worker)
		}
		busy = true
		if g.Lease.Fence <= b.fences[g.Job.ID] {
			b.t.Fatalf("P3: fence %d after %d", g.Lease.Fence, b.fences[g.Job.ID])
		}
		for _, e := range b.held {
			if e.grant.Job.ID == g.Job.ID && !b.over(e) {
				b.t.Fatalf("P3: job %v was granted twice", g.Job.ID)
			}
		}
		b.fences[g.Job.ID] = g.Lease.Fence
		b.grants[g.Job.ID]++
		b.held[g.Lease.ID] = &entry{grant: g, until: g.Lease.ExpiresAt}
	}
}

func (b *books) holds(worker string) bool {
	for _, e := range b.held {
		if e.grant.Lease.WorkerID == worker && !b.over(e) {
			return true
		}
	}
	return false
}

// pick returns a lease that the books know, living or over.
func (b *books) pick() *entry {
	if len(b.held) == 0 {
		return nil
	}
	all := slices.SortedFunc(maps.Values(b.held), func(x, y *entry) int {
		// ids rise, so a failure can be repeated
		return cmp.Compare(x.grant.Lease.ID.String(), y.grant.Lease.ID.String())
	})
	return all[rapid.IntRange(0, len(all)-1).Draw(b.rt, "lease")]
}

// end returns when a lease ends without further heartbeats; time without service does not count.
func (b *books) end(e *entry) lessor.Instant { return max(e.until, b.floor.Add(time.Minute)) }

func (b *books) over(e *entry) bool { return e.gone || now() >= b.end(e) }

// judge checks a call on a lease against whether it is over (P4).
func (b *books) judge(verb string, e *entry, err error) bool {
	if b.over(e) != (lessor.CodeOf(err) == lessor.CodeLeaseNotFound) {
		b.t.Fatalf("P4: %s on a lease until %v at %v: %v", verb, e.until, now(), err)
	}
	if err != nil {
		delete(b.held, e.grant.Lease.ID)
	}
	return err == nil
}

func (b *books) extend() {
	if e := b.pick(); e != nil {
		a, err := b.beat(e.grant)
		if b.judge("heartbeat", e, err) {
			if a.ExpiresAt < e.until {
				b.t.Fatalf("expires_at moved from %v back to %v", e.until, a.ExpiresAt)
			}
			e.until = a.ExpiresAt
		}
	}
}

func (b *books) finish() {
	if e := b.pick(); e != nil {
		status := rapid.SampledFrom([]string{"completed", "failed"}).Draw(b.rt, "status")
		if b.judge("complete", e, b.complete(e.grant, status)) {
			delete(b.held, e.grant.Lease.ID)
		}
	}
}

func (b *books) release() {
	if e := b.pick(); e != nil {
		err := b.Release(b.ctx, anybody, e.grant.Lease.ID, lessor.Release{WorkerID: &e.grant.Lease.WorkerID})
		if b.judge("release", e, err) {
			delete(b.held, e.grant.Lease.ID)
			b.given[e.grant.Job.ID]++
		}
	}
}

func (b *books) cancel() {
	if len(b.jobs) == 0 {
		return
	}
	id := rapid.SampledFrom(b.jobs).Draw(b.rt, "job")
	force := rapid.Bool().Draw(b.rt, "force")
	j, err := b.Cancel(b.ctx, anybody, id, force)
	if err == nil && force && j.State != lessor.Cancelled {
		b.t.Fatalf("a forced cancel left the job %s", j.State)
	}
	if err == nil && j.State == lessor.Cancelled {
		b.drop(id)
	}
}

func (b *books) drop(job lessor.JobID) {
	for id, e := range b.held {
		if e.grant.Job.ID == job {
			delete(b.held, id)
		}
	}
}

func (b *books) retry() {
	if len(b.jobs) == 0 {
		return
	}
	id := rapid.SampledFrom(b.jobs).Draw(b.rt, "job")
	if _, err := b.Retry(b.ctx, anybody, id); err == nil {
		b.given[id]++
	}
}

func (b *books) wait() {
	time.Sleep(time.Duration(rapid.IntRange(1, 70_000).Draw(b.rt, "ms")) * time.Millisecond)
}

func (b *books) reboot() {
	b.restart(time.Duration(rapid.IntRange(1, 300).Draw(b.rt, "down")) * time.Second)
	b.floor = now()
}

// check compares the tables with what must always hold.
func (b *books) check() {
	synctest.Wait()
	b.noDrift()
	leases, _, err := b.Leases(b.ctx, anybody, "", 1000, "")
	if err != nil {
		b.t.Fatalf("list leases: %v", err)
	}
	units, live, tenants, locks := 0, map[lessor.LeaseID]bool{}, map[lessor.TenantID]int{}, map[string]bool{}
	for _, l := range leases {
		j := b.job(l.JobID)
		units += l.CapacityUnits
		live[l.ID] = true
		tenants[j.TenantID]++
		if j.LockKey != nil {
			k := j.TenantID.String() + *j.LockKey
			if locks[k] {
				b.t.Fatalf("P11: lock %s is held twice", k)
			}
			locks[k] = true
		}
	}
	if units > propertyUsable {
		b.t.Fatalf("P11: %d units are leased of %d", units, propertyUsable)
	}
	for id, n := range tenants {
		if n > propertyCap && !id.IsZero() {
			b.t.Fatalf("P11: tenant %v holds %d leases, its cap is %d", id, n, propertyCap)
		}
	}
	for id, e := range b.held {
		if !live[id] && !b.over(e) {
			b.t.Fatalf("P5: a lease until %v is gone at %v", b.end(e), now())
		}
		if live[id] && now() > b.end(e).Add(2*time.Second) {
			b.t.Fatalf("P6: a lease until %v still lives at %v", b.end(e), now())
		}
		e.gone = e.gone || !live[id]
	}
	for id, n := range b.grants {
		if n > 2+b.given[id] {
			b.t.Fatalf(
				"P9: job %v was granted %d times, with 2 attempts and %d more:\n%s", id, n, b.given[id], b.story(id),
			)
		}
	}
	b.checkRecords()
}

// checkRecords replays every record (P13).
func (b *books) checkRecords() {
	for _, id := range b.jobs {
		events, _, err := b.Events(b.ctx, anybody, id, 1000, "")
		if err != nil {
			b.t.Fatalf("events: %v", err)
		}
		if got, want := rules.Replay(events), b.job(id).State; got != want {
			b.t.Fatalf("P13: the record replays to %s, the job is %s", got, want)
		}
	}
}

// story is a job's record as text, for a failure.
func (b *books) story(id lessor.JobID) string {
	events, _, _ := b.Events(b.ctx, anybody, id, 1000, "") // what is there helps, an error does not
	var lines []string
	for _, e := range events {
		lines = append(
			lines, fmt.Sprintf("%d %v %s by %s: %s (attempt %d)", e.Seq, e.At, e.To, e.Actor, e.Reason, e.Attempt),
		)
	}
	return strings.Join(lines, "\n")
}
