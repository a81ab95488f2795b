package chaos

import (
	"flag"
	"math/rand/v2"
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
	killAtRandom(t, l, []*server{s}, *killsFlag)
	l.finish()
}

// killAtRandom kills servers and starts them again until there were enough kills, or the time is over.
func killAtRandom(t *testing.T, l *load, nodes []*server, kills int) {
	t.Helper()
	began, printedAt := time.Now(), time.Now()
	n := 0
	for ; n < kills && time.Since(began) < *limitFlag; n++ {
		time.Sleep(100*time.Millisecond + rand.N(400*time.Millisecond))
		s := nodes[rand.IntN(len(nodes))]
		s.kill()
		time.Sleep(rand.N(100 * time.Millisecond))
		for s.try() != nil { // the database may still be starting
			time.Sleep(100 * time.Millisecond)
		}
		if time.Since(printedAt) > 30*time.Second {
			printedAt = time.Now()
			t.Logf("%d of %d kills in %v; %d jobs were acknowledged", n+1, kills, time.Since(began).Round(time.Second),
				l.acked.Load())
		}
	}
	l.more(50)
	t.Logf("%d kills", n)
}
