package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lessor"
	"lessor/node"
)

const (
	postgresBound = 1.5 // times the rate of River, with one node
	nodesBound    = 1.0 // with two nodes together
)

// postgres compares lifecycles of jobs with River on one PostgreSQL. Rounds alternate, so that both see the same
// machine.
func postgres(ctx context.Context, b *bench, db *database) (err error) {
	jobs := b.size.of(60_000, 20_000, 1_024)
	rounds := b.size.of(3, 1, 1)
	var best riverPGSetting
	if b.peers {
		if best, err = b.tuneRiverPG(ctx, db, jobs/3); err != nil {
			return fmt.Errorf("river: %w", err)
		}
	}
	all, err := alternate(b, "postgres", rounds,
		func() (shared, error) { return b.livesPG(ctx, db, 1, jobs) },
		ofRiver(b, func() (shared, error) { return b.riverLivesPG(ctx, db, jobs, best) }),
		func() (shared, error) { return b.livesPG(ctx, db, 2, jobs) })
	if err != nil {
		return err
	}
	b.setting("%d jobs per round, %d alternating rounds, medians; payload %d bytes; a fresh database for each round",
		jobs, rounds, len(payload))
	b.setting("PostgreSQL %s, one server for all: %s", db.version, strings.Join(databaseSettings, ", "))
	b.setting("Lessor: %d callers through node, each Submit, Request, Heartbeat, Complete", lifecycleCallers)
	if b.peers {
		b.setting("River: insert and work, no heartbeats; %v; fetch cooldown and poll 1 ms", best)
	}
	b.postgresTable(all[0], all[2], all[1])
	return nil
}

func (b *bench) postgresTable(one, two, river []shared) {
	rows := []string{
		sharedRow("Lessor, one node", one, river),
		sharedRow(fmt.Sprintf("Lessor, two nodes, %d callers each", lifecycleCallers/2), two, river),
	}
	if river != nil {
		rows = append(rows, sharedRow("River", river, river))
	}
	b.table("|jobs/s|lowest|highest|CPU µs per job|times River|CPU µs per job, database", rows)
	if river == nil {
		return
	}
	rate := median(own(river), cost.rate)
	b.atLeast("Lessor over River, one node", median(own(one), cost.rate)/rate, postgresBound)
	b.atLeast("Lessor over River, two nodes together", median(own(two), cost.rate)/rate, nodesBound)
}

func sharedRow(name string, rounds, river []shared) string {
	return fmt.Sprintf("%s|%.1f", lifeRow(name, own(rounds), own(river)), median(theirs(rounds), cost.cpuUS))
}

// livesPG runs lifecycles on nodes that share a fresh database. Each caller uses one node.
func (b *bench) livesPG(ctx context.Context, db *database, nodes, jobs int) (c shared, err error) {
	cluster, err := b.startNodes(ctx, db, nodes, nil)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, cluster.end(ctx)) }()
	live := cluster.live()
	if err := concurrently(ctx, lifecycleCallers, min(jobs/8, 2*lifecycleCallers), live); err != nil { // warm-up
		return c, err
	}
	return db.measure(jobs, func() error { return concurrently(ctx, lifecycleCallers, jobs, live) })
}

// cluster is a number of nodes in this process that share a database.
type cluster struct {
	db    *database
	name  string
	nodes []*server
}

func (b *bench) startNodes(
	ctx context.Context, db *database, n int, alter func(*node.Config),
) (_ *cluster, err error) {
	c := &cluster{db: db}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.end(ctx))
		}
	}()
	if c.name, err = db.create(ctx); err != nil {
		return nil, err
	}
	for range n {
		s, err := b.start(ctx, func(cfg *node.Config) {
			cfg.Store = db.URL(c.name)
			if alter != nil {
				alter(cfg)
			}
		})
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, s)
	}
	return c, nil
}

// live returns the function that a caller repeats with its own node.
func (c *cluster) live() func(ctx context.Context, caller, item int) error {
	workers := workerNames(lifecycleCallers)
	return func(ctx context.Context, caller, _ int) error {
		sub := lessor.Submission{Type: new("bench"), Payload: []byte(payload)}
		return c.nodes[caller%len(c.nodes)].live(ctx, &workers[caller], sub)
	}
}

// end stops the nodes and drops their database.
func (c *cluster) end(ctx context.Context) error {
	var errs []error
	for _, s := range c.nodes {
		errs = append(errs, s.end())
	}
	if c.name != "" {
		errs = append(errs, c.db.drop(ctx, c.name))
	}
	return errors.Join(errs...)
}
