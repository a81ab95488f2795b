package chaos

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lessor/client"
	"lessor/internal/pgtest"
)

// cluster is three nodes on one PostgreSQL.
type cluster struct {
	t     *testing.T
	db    *pgtest.Server
	nodes []*server
}

func newCluster(t *testing.T, o pgtest.Options) *cluster {
	t.Helper()
	db := database(t, o)
	return clusterAt(t, db, db.URL("postgres"))
}

// clusterAt starts three nodes that reach their database by a URL.
func clusterAt(t *testing.T, db *pgtest.Server, url string) *cluster {
	t.Helper()
	k := &cluster{t: t, db: db}
	for range 3 {
		k.nodes = append(k.nodes, start(t, append(loadSettings(), "LESSOR_STORE="+url)...))
	}
	return k
}

// database starts a server that ends with the test.
func database(t *testing.T, o pgtest.Options) *pgtest.Server {
	t.Helper()
	db, err := pgtest.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	stopDatabase(t, db)
	return db
}

func stopDatabase(t *testing.T, db *pgtest.Server) {
	t.Helper()
	t.Cleanup(func() {
		if err := db.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// client returns a client of all nodes.
func (k *cluster) client() *client.Client {
	k.t.Helper()
	var urls []string
	for _, s := range k.nodes {
		urls = append(urls, "http://"+s.addr)
	}
	c, err := client.New(client.Config{Server: strings.Join(urls, ","), Timeout: 5 * time.Second})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(c.Close)
	return c
}

// TestClusterSurvivesTheDeathOfAnything kills nodes and the database at random under load. The history of every job is
// linearizable, every acknowledged job ends once, and no lease of a worker that sends heartbeats ends.
func TestClusterSurvivesTheDeathOfAnything(t *testing.T) {
	t.Parallel()
	k := newCluster(t, pgtest.Options{Durable: true})
	l := startLoad(t, k.nodes...)
	l.more(50)
	const nodesPerDatabase = 100 // so many nodes die for each database
	rounds := max(2, *killsFlag/nodesPerDatabase)
	killer := &killer{t: t, load: l, until: time.Now().Add(*limitFlag)}
	for range rounds {
		if time.Now().After(killer.until) {
			break
		}
		killer.kill(k.nodes, *killsFlag/rounds)
		k.killDatabase()
	}
	l.more(50)
	l.finish()
}

func (k *cluster) killDatabase() {
	k.t.Helper()
	must(k.t, k.db.Kill())
	time.Sleep(rand.N(500 * time.Millisecond))
	must(k.t, k.db.Up(k.t.Context()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
