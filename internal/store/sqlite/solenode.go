package sqlite

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// These methods are for nodes that share a store. Here one process owns the file, and its only writer excludes all
// others.

// Shared implements scheduler.Store.
func (*Store) Shared() bool { return false }

// WentBack implements scheduler.Store: the process owns the file.
func (*Store) WentBack() string { return "" }

// Rate implements scheduler.Store: there is no other node.
func (*Store) Rate(_ context.Context, busy int, _ time.Duration) (int, error) { return busy, nil }

// Peek implements scheduler.Tx.
func (t *tx) Peek(ctx context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error) {
	return t.Leases(ctx, ids)
}

// Lock implements scheduler.Tx.
func (t *tx) Lock(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error) {
	return t.Standings(ctx, ids)
}

// SoleNode implements scheduler.Tx.
func (*tx) SoleNode() bool { return true }

// Gate implements scheduler.Tx.
func (*tx) Gate(context.Context) error { return nil }

// Publish implements scheduler.Tx.
func (*tx) Publish(context.Context, []byte) error { return nil }

// Position implements scheduler.View.
func (*view) Position(context.Context) (scheduler.Position, error) { return nil, nil }

// Changes implements scheduler.View.
func (*view) Changes(context.Context, scheduler.Position) ([]scheduler.Change, error) {
	return nil, nil
}

// ExchangeWorkers implements scheduler.Store: there is no other node.
func (*Store) ExchangeWorkers(context.Context, []byte, time.Duration) ([][]byte, error) {
	return nil, nil
}
