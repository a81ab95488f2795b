package chaos

import (
	"testing"
	"time"

	"lessor"
	"lessor/internal/pgtest"
)

// TestLeasesSurviveAnOutageOfTheDatabase kills the database for three ttl. The node answers 503 meanwhile and expires
// nothing. Afterwards a worker that sends heartbeats keeps its leases, and one that does not loses them after the
// floor.
func TestLeasesSurviveAnOutageOfTheDatabase(t *testing.T) {
	const ttl = 3 * time.Second
	db := database(t, pgtest.Options{Durable: true})
	s := start(t, "LESSOR_STORE="+db.URL("postgres"), "LESSOR_LEASE_TTL=3s", "LESSOR_CAPACITY_BUSY=0",
		"LESSOR_CAPACITY_TOTAL_UNITS=200")
	c := s.client()
	held := holdAll(t, c, 2)
	if err := db.Kill(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for time.Since(start) < 3*ttl {
		_, err := c.Heartbeat(t.Context(), held[0].leases[0].Lease.ID, lessor.Heartbeat{WorkerID: &held[0].name})
		if code := lessor.CodeOf(err); code != lessor.CodeUnavailable {
			t.Fatalf("without its database the node answers %v, want 503", err)
		}
		time.Sleep(time.Second)
	}
	if err := db.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	for c.Ready(t.Context()) != nil {
		if time.Since(start) > 3*ttl+20*time.Second {
			t.Fatal("the node does not continue by itself")
		}
		time.Sleep(20 * time.Millisecond)
	}
	beatAll(t, c, held[:1])
	wantState(t, c, held[1].leases[0], lessor.Leased)
	for range 5 {
		time.Sleep(time.Second)
		beatAll(t, c, held[:1])
	}
	_, err := c.Heartbeat(t.Context(), held[1].leases[0].Lease.ID, lessor.Heartbeat{WorkerID: &held[1].name})
	if lessor.CodeOf(err) != lessor.CodeLeaseNotFound {
		t.Errorf("a worker that sent no heartbeat still has its lease: %v", err)
	}
	completeAll(t, c, held[:1])
}
