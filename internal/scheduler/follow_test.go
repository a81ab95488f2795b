package scheduler_test

import (
	"context"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
)

// slowStore is a store on which time passes while a transaction reads the changes of other nodes.
type slowStore struct {
	*memory.Store
	now *lessor.Instant
}

func (s slowStore) Send(ctx context.Context, on scheduler.Footing, fn func(scheduler.Tx) error) (func() error, error) {
	return s.Store.Send(ctx, on, func(tx scheduler.Tx) error { return fn(slowTx{tx, s.now}) })
}

func (s slowStore) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	return s.Store.Update(ctx, func(tx scheduler.Tx) error { return fn(slowTx{tx, s.now}) })
}

type slowTx struct {
	scheduler.Tx
	now *lessor.Instant
}

func (t slowTx) Changes(ctx context.Context, after scheduler.Position) ([]scheduler.Change, error) {
	*t.now = t.now.Add(50 * time.Millisecond)
	return t.Tx.Changes(ctx, after)
}

// TestClockIsReadAfterTheChangesOfOthers: a pass that has followed other nodes never decides with an earlier time than
// theirs. A lease that is granted while the node reads another node's changes is issued after them.
func TestClockIsReadAfterTheChangesOfOthers(t *testing.T) {
	now := lessor.Instant(1_700_000_000_000)
	db := memory.New(memory.Options{Clock: func() lessor.Instant { return now }})
	s := &stepper{t: t, ctx: t.Context(), clock: time.Unix(1_700_000_000, 0)}
	n := scheduler.NewStepped(slowStore{db.Open("node"), &now}, config(), func() time.Time { return s.clock })
	s.step(n)
	s.submit(n)
	before := now
	g := s.lease(n, "worker")
	if now == before {
		t.Fatal("the grant read no changes of other nodes")
	}
	if g.Lease.IssuedAt != now {
		t.Errorf("the lease is issued at %v, and changes up to %v were read before", g.Lease.IssuedAt, now)
	}
}
