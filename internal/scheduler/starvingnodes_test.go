package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
)

// TestUnitsAreKeptOnAllNodes: workers that ask for a job which does not fit call one node, and workers of small jobs
// call another. That one must keep units too when the large job has starved, or it never gets them.
func TestUnitsAreKeptOnAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.TotalUnits, cfg.ReserveUnits = 4, 0
		db := memory.New(memory.Options{})
		a, b := inBubble(t, db, "a", cfg), inBubble(t, db, "b", cfg)
		defer a.halt()
		defer b.halt()
		for range 600 {
			b.submitUnits("small", 2)
		}
		small := func() *lessor.Grant {
			g, _ := b.ask("worker", asksFor("small"))
			return g
		}
		held := []*lessor.Grant{small(), small()}
		a.submitUnits("large", 4)
		if _, d := a.ask("asking", asksFor("large")); d == nil || d.Code != lessor.NoCapacity {
			t.Fatalf("the large job: %+v, want %s", d, lessor.NoCapacity)
		}
		for i := range 180 { // one ends each half second, while the other runs
			time.Sleep(500 * time.Millisecond)
			if g := held[i%2]; g != nil {
				b.mustComplete(*g, "completed")
			}
			if g, _ := a.ask("asking", asksFor("large")); g != nil {
				return
			}
			held[i%2] = small()
		}
		t.Error("the large job was not granted, although it has starved for a minute")
	})
}

// inBubble runs one of several nodes on a store in memory, inside a bubble.
func inBubble(t *testing.T, db *memory.Database, name string, cfg scheduler.Config) *world {
	store := db.Open(name)
	w := &world{t: t, ctx: t.Context(), cfg: cfg, store: store, Scheduler: scheduler.New(store, cfg)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	w.halt = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v, want nil after a clean stop", err)
		}
		_ = store.Close()
	}
	synctest.Wait()
	return w
}
