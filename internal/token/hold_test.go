package token

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// TestHoldsEndWithTheirToken: deleted here, deleted on another node, expired, and without the store.
func TestHoldsEndWithTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := lessor.At(time.Now())
		here, _ := issue(t, Ask{Role: new("worker")}, now)
		there, _ := issue(t, Ask{Role: new("worker")}, now)
		short, _ := issue(t, Ask{Role: new("worker"), ExpiresInSeconds: new(int64(60))}, now)
		stays, _ := issue(t, Ask{Role: new("worker")}, now)
		stored := []scheduler.Token{here, there, short, stays}
		var failing error
		b := NewBook(func(context.Context) ([]scheduler.Token, error) { return stored, failing })
		if err := b.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go b.Run(ctx, func(error) {})
		ended := map[string]time.Time{}
		for name, hash := range map[string][32]byte{
			"here": here.Hash, "there": there.Hash, "short": short.Hash,
			"stays": stays.Hash, "none": Tokenless,
		} {
			t.Cleanup(b.Hold(hash, func() { ended[name] = time.Now() }))
		}
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatalf("ended at once: %v", ended)
		}
		within := func(name string, since time.Time) {
			t.Helper()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if at, ok := ended[name]; !ok || at.Sub(since) >= 5*time.Second {
				t.Errorf("%s: ended %v after %v, want within 5 s", name, ok, at.Sub(since))
			}
		}
		since := time.Now()
		if b.Remove(here.ID); ended["here"] != since {
			t.Error("a token that is deleted here keeps its requests")
		}
		stored = []scheduler.Token{short, stays} // another node deleted there
		within("there", since)
		failing = errors.New("gone")
		time.Sleep(time.Until(short.ExpiresAt.Time()))
		within("short", short.ExpiresAt.Time())
		bound, _ := issue(t, Ask{Role: new("viewer"), TenantID: new("018f0000-0000-7000-8000-000000000001")}, now)
		b.Put(bound)
		if _, ok := ended["none"]; !ok {
			t.Error("who has no token stays when nobody without one is let in")
		}
		if _, ok := ended["stays"]; ok || len(b.holds) != 1 {
			t.Errorf("a valid token's request ended: %v; %d are held, want 1", ok, len(b.holds))
		}
		late := false
		b.Hold(here.Hash, func() { late = true })()
		if !late || len(b.holds) != 1 {
			t.Errorf("a token that went before its request was held: released %v, %d held", late, len(b.holds))
		}
	})
}
