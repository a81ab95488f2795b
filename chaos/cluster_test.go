package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/pgtest"
)

// cluster is three nodes on one PostgreSQL with many workers, while nodes and database are killed at random.
type cluster struct {
	t     *testing.T
	db    *pgtest.Server
	nodes []*server
	c     *client.Client

	jobs  int
	left  atomic.Int64 // jobs whose completion is not yet acknowledged
	mu    sync.Mutex
	acked []lessor.JobID
	ended map[lessor.JobID]int
}

// scale is the size of the test: LESSOR_CHAOS=full is what the project promises, the default what a test run can
// afford.
func scale() (jobs, workers, nodeKills, databaseKills int) {
	if os.Getenv("LESSOR_CHAOS") == "full" {
		return 50_000, 200, 30, 5
	}
	return 5_000, 200, 6, 2
}

// TestClusterSurvivesTheDeathOfAnything kills nodes and the database while jobs are submitted and worked on. Afterwards
// every acknowledged job has ended exactly once, no job had two leases at a time, fences rose, and every attempt beyond
// the first is explained by a recorded loss.
func TestClusterSurvivesTheDeathOfAnything(t *testing.T) {
	jobs, workers, nodeKills, databaseKills := scale()
	k := newCluster(t, jobs)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { k.submit(ctx, i, jobs/10) })
	}
	for i := range workers {
		all.Go(func() { k.work(ctx, fmt.Sprintf("worker-%d", i)) })
	}
	k.kill(nodeKills, databaseKills)
	for deadline := time.Now().Add(3 * time.Minute); k.left.Load() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs are not done 3 minutes after the last kill", k.left.Load())
		}
	}
	stop()
	all.Wait()
	k.check()
}

func newCluster(t *testing.T, jobs int) *cluster {
	t.Helper()
	db, err := pgtest.Start(t.Context(), pgtest.Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Stop(); err != nil {
			t.Error(err)
		}
	})
	k := &cluster{t: t, db: db, jobs: jobs, ended: map[lessor.JobID]int{}}
	k.left.Store(int64(jobs))
	var urls []string
	for range 3 {
		s := start(t, "LESSOR_STORE="+db.URL("postgres"), "LESSOR_LEASE_TTL=5s", "LESSOR_CAPACITY_BUSY=0",
			"LESSOR_CAPACITY_TOTAL_UNITS=10000")
		k.nodes = append(k.nodes, s)
		urls = append(urls, "http://"+s.addr)
	}
	k.c, err = client.New(client.Config{Server: strings.Join(urls, ","), Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.c.Close)
	return k
}

// kill kills nodes and the database at random, and starts each again soon.
func (k *cluster) kill(nodeKills, databaseKills int) {
	every := max(1, nodeKills/max(1, databaseKills))
	for n := range nodeKills {
		time.Sleep(200*time.Millisecond + rand.N(400*time.Millisecond))
		s := k.nodes[rand.IntN(len(k.nodes))]
		s.kill()
		if n%every == every-1 {
			k.killDatabase()
		}
		for s.try() != nil { // the database may still be starting
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func (k *cluster) killDatabase() {
	if err := k.db.Kill(); err != nil {
		k.t.Error(err)
	}
	time.Sleep(rand.N(300 * time.Millisecond))
	if err := k.db.Up(k.t.Context()); err != nil {
		k.t.Errorf("the database did not come back: %v", err)
	}
}

// submit submits n jobs in batches, each until it is acknowledged; idempotency keys make repeating safe.
func (k *cluster) submit(ctx context.Context, submitter, n int) {
	const size = 50
	for first := 0; first < n; first += size {
		subs := make([]lessor.Submission, size)
		for i := range subs {
			key := fmt.Sprintf("%d-%d", submitter, first+i)
			subs[i] = lessor.Submission{Type: new("chaos"), IdempotencyKey: &key, MaxAttempts: new(int64(50))}
		}
		for ctx.Err() == nil {
			jobs, err := k.c.SubmitBatch(ctx, subs)
			if err != nil {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			k.mu.Lock()
			for _, j := range jobs {
				k.acked = append(k.acked, j.ID)
			}
			k.mu.Unlock()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (k *cluster) work(ctx context.Context, name string) {
	for ctx.Err() == nil {
		request := lessor.LeaseRequest{WorkerID: &name, WaitMS: new(int64(2000)), MaxLeases: new(int64(5))}
		grants, denial, err := k.c.Request(ctx, request)
		if err != nil || denial != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for _, g := range grants {
			k.finish(ctx, name, g)
		}
	}
}

// finish sends a heartbeat and completes the lease, repeating until the server accepts or refuses.
func (k *cluster) finish(ctx context.Context, name string, g lessor.Grant) {
	_, _ = k.c.Heartbeat(ctx, g.Lease.ID, lessor.Heartbeat{WorkerID: &name}) // the completion fails if this was lost
	for ctx.Err() == nil {
		err := k.c.Complete(ctx, g.Lease.ID, lessor.Completion{WorkerID: &name, Status: new("completed")})
		if err == nil {
			k.mu.Lock()
			k.ended[g.Job.ID]++
			k.mu.Unlock()
			k.left.Add(-1)
			return
		}
		if lessor.CodeOf(err) == lessor.CodeLeaseNotFound {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (k *cluster) check() {
	k.t.Helper()
	if len(k.acked) != k.jobs {
		k.t.Errorf("%d jobs were acknowledged, want %d", len(k.acked), k.jobs)
	}
	var extra atomic.Int64
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < len(k.acked); i += 8 {
				extra.Add(int64(k.checkJob(k.acked[i])))
			}
		})
	}
	all.Wait()
	k.t.Logf("%d jobs acknowledged and completed on 3 nodes; %d attempts beyond the first, each explained",
		len(k.acked), extra.Load())
}

// checkJob compares a job's record with the acknowledgements, and returns the number of attempts beyond the first.
func (k *cluster) checkJob(id lessor.JobID) int {
	j, err := k.c.Job(k.t.Context(), id)
	if err != nil || j.State != lessor.Completed {
		k.t.Errorf("acknowledged job %v is %s (%v), want completed", id, j.State, err)
		return 0
	}
	if k.ended[id] != 1 {
		k.t.Errorf("the completion of job %v was acknowledged %d times", id, k.ended[id])
	}
	lost, fence, held := 0, int64(0), false
	for e, err := range k.c.AllEvents(k.t.Context(), id) {
		if err != nil {
			k.t.Error(err)
			return 0
		}
		switch e.To {
		case lessor.Leased:
			if held || *e.Fence <= fence {
				k.t.Errorf("job %v was leased with fence %d after %d, held %v", id, *e.Fence, fence, held)
			}
			held, fence = true, *e.Fence
		case lessor.Queued, lessor.Expired, lessor.Completed:
			held = false
		}
		if e.To == lessor.Expired || e.Reason == "released" || e.Reason == "client_gone" {
			lost++
		}
	}
	if j.Attempt > 1+lost {
		k.t.Errorf("job %v has %d attempts and %d recorded losses", id, j.Attempt, lost)
	}
	return j.Attempt - 1
}
