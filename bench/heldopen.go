package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const heldOpenBound = 0.5 // of the undisturbed rate

// heldOpen measures the cost of an open transaction on another connection. While it lasts, no dead row can be removed,
// so the rate falls with time; the last thirds of both periods are compared.
func heldOpen(ctx context.Context, b *bench, db *database) (err error) {
	period := time.Duration(b.size.of(60, 10, 1)) * time.Second
	var runs [3][thirds]cost
	names := [len(runs)]string{"undisturbed, before", "held open", "undisturbed, after"}
	for i, name := range names {
		b.note("heldopen: %v %s", period, name)
		if runs[i], err = b.livesFor(ctx, db, period, i == 1); err != nil {
			return err
		}
	}
	b.setting("%v each, a fresh database each; one node, %d callers as in postgres; PostgreSQL %s",
		period, lifecycleCallers, db.version)
	b.setting("held open from before the first job until after the last:" +
		" begin isolation level repeatable read; select txid_current()")
	var rows []string
	for i, name := range names {
		rows = append(rows, thirdsRow(name, runs[i]))
	}
	b.table("jobs/s|first third|second|last", rows)
	free := runs[0][thirds-1].plus(runs[2][thirds-1]) // before and after, in case the speed of the machine changes
	b.atLeast("last third, held open over undisturbed", runs[1][thirds-1].rate()/free.rate(), heldOpenBound)
	return nil
}

const thirds = 3

func thirdsRow(name string, all [thirds]cost) string {
	for _, c := range all {
		name += fmt.Sprintf("|%.0f", c.rate())
	}
	return name
}

// livesFor runs lifecycles for a period and returns the cost of each third of it.
func (b *bench) livesFor(
	ctx context.Context, db *database, period time.Duration, hold bool,
) (all [thirds]cost, err error) {
	c, err := b.startNodes(ctx, db, 1, nil)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, c.end(ctx)) }()
	if hold {
		release, bad := holdOpen(ctx, db.URL(c.name))
		if bad != nil {
			return all, bad
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	var lived atomic.Int64
	live, start := c.live(), time.Now()
	until := start.Add(period)
	ended := make(chan error, 1)
	go func() {
		ended <- concurrently(ctx, lifecycleCallers, lifecycleCallers, func(ctx context.Context, caller, _ int) error {
			for time.Now().Before(until) {
				if err := live(ctx, caller, 0); err != nil {
					return err
				}
				lived.Add(1)
			}
			return nil
		})
	}()
	for i := range all {
		before := lived.Load()
		third := time.NewTimer(time.Until(start.Add(period * time.Duration(i+1) / thirds)))
		select {
		case <-third.C:
		case err := <-ended: // slightly early, or with an error
			ended <- err
		}
		all[i] = cost{ops: int(lived.Load() - before), wall: period / thirds}
	}
	return all, <-ended
}

// holdOpen opens a transaction with a snapshot and an id, which keeps vacuum from removing rows that die later.
func holdOpen(ctx context.Context, url string) (release func() error, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	release = func() error { return conn.Close(context.WithoutCancel(ctx)) }
	_, err = conn.Exec(ctx, "begin isolation level repeatable read")
	if err == nil {
		_, err = conn.Exec(ctx, "select txid_current()")
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}
