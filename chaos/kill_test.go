package chaos

import (
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// How far the tests under faults go. `make chaos` sets both.
var (
	killsFlag = flag.Int("kills", 12, "how often nodes are killed in each test of kills")
	limitFlag = flag.Duration("kill-limit", 10*time.Second, "the time after which such a test stops killing")
)

// TestKilledServerLosesNothing kills the only server on SQLite again and again under load. The history of every job is
// linearizable, every acknowledged job ends once, and no lease of a worker that sends heartbeats ends.
func TestKilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, loadSettings()...)
	l := startLoad(t, s)
	l.more(50)
	k := &killer{t: t, load: l, until: time.Now().Add(*limitFlag)}
	k.kill([]*server{s}, *killsFlag)
	l.finish()
}

// killer kills servers under a load.
type killer struct {
	t     *testing.T
	load  *load
	until time.Time // it kills nothing after it
	kills atomic.Int64
}

// kill kills servers and starts them again until there were n kills more, or the time is over. Each server dies at its
// own times, so that some moments have none.
func (k *killer) kill(servers []*server, n int) {
	left := atomic.Int64{}
	left.Store(int64(n))
	var all sync.WaitGroup
	for _, s := range servers {
		all.Go(func() {
			for left.Add(-1) >= 0 && time.Now().Before(k.until) {
				time.Sleep(100*time.Millisecond + rand.N(400*time.Millisecond))
				s.restart(100 * time.Millisecond)
				k.kills.Add(1)
			}
		})
	}
	all.Wait()
	k.load.more(50)
	k.t.Logf("%d kills; %d jobs were acknowledged", k.kills.Load(), k.load.acked.Load())
}

// restart kills a server and starts it again, at most as much later.
func (s *server) restart(later time.Duration) {
	s.kill()
	time.Sleep(rand.N(later))
	for s.try() != nil { // the database may still be starting
		time.Sleep(100 * time.Millisecond)
	}
}
