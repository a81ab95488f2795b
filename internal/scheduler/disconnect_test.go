package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"lessor"
	"lessor/internal/scheduler"
)

// severed is the store of a node whose transactions lose their sessions before the commit while it is on, as they do if
// the node stalls for longer than the database waits.
type severed struct {
	scheduler.Store
	on    atomic.Bool
	sever func()
}

func (s *severed) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	return s.Store.Update(ctx, s.severing(fn))
}

func (s *severed) Send(ctx context.Context, on scheduler.Footing, fn func(scheduler.Tx) error) (func() error, error) {
	return s.Store.Send(ctx, on, s.severing(fn))
}

func (s *severed) severing(fn func(scheduler.Tx) error) func(scheduler.Tx) error {
	return func(tx scheduler.Tx) error {
		err := fn(tx)
		if s.on.Load() {
			s.sever()
		}
		return err
	}
}

// TestCallsOutliveTheSessionOfTheirTransaction: the database ends a session in the middle of a transaction. The node
// repeats the transaction on another one, and callers notice nothing.
func TestCallsOutliveTheSessionOfTheirTransaction(t *testing.T) {
	url := pool.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	s := &severed{sever: func() {
		_, err := conn.Exec(t.Context(), "select pg_terminate_backend(pid, 10000) from pg_stat_activity"+
			" where datname = current_database() and pid <> pg_backend_pid()")
		must(t, err)
	}}
	cfg := config()
	cfg.Observe = func(stats scheduler.Stats) {
		if stats.Calls > 0 && errors.Is(stats.Err, scheduler.ErrDisconnected) {
			s.on.Store(false)
		}
	}
	w := node(t, url, cfg, func(store scheduler.Store) scheduler.Store {
		s.Store = store
		return s
	})
	var g lessor.Grant
	for _, call := range []func(){
		func() { w.submit(nil) },
		func() { g = w.lease("worker", nil) },
		func() { w.mustBeat(g) },
		func() { w.mustComplete(g, "completed") },
	} {
		s.on.Store(true)
		call()
		if s.on.Load() {
			t.Fatal("the call was answered, and its transaction kept its session")
		}
	}
	w.noDrift()
}
