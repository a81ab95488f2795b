package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lessor"
)

const (
	batchCallers = 4   // that submit, and then work, at once
	batchBound   = 3.5 // times the rate of River, insert and work
	insertBound  = 0.8 // times River's rate of inserts, by COPY
)

// phases is what inserting jobs cost, and what working them cost.
type phases struct{ insert, work shared }

// batches compares jobs that are submitted in batches of 1,000, taken in batches of 500 and completed together with
// River on one PostgreSQL.
func batches(ctx context.Context, b *bench, db *database) error {
	jobs := b.size.of(60_000, 20_000, 2_000)
	rounds := b.size.of(5, 3, 1)
	set := riverPGSetting{riverSetting: riverSetting{batch: 10_000, inserters: 1, workers: 2000}, pool: 20}
	all, err := alternate(b, "batches", rounds,
		func() (phases, error) { return b.batchesPG(ctx, db, jobs) },
		ofRiver(b, func() (phases, error) { return b.riverPhases(ctx, db, jobs, set) }))
	if err != nil {
		return err
	}
	b.setting("%d jobs per round, %d alternating rounds, medians; payload %d bytes; a fresh database for each round",
		jobs, rounds, len(payload))
	b.setting("PostgreSQL %s, one server for all: %s", db.version, strings.Join(databaseSettings, ", "))
	b.setting("Lessor: %d callers through node, SubmitBatch of %d, then Request of %d and CompleteAll", batchCallers,
		bulk, maxLeases)
	b.setting("River: %v; fetch cooldown and poll 1 ms", set)
	b.batchesTable(all[0], all[1])
	return nil
}

func (b *bench) batchesTable(ours, river []phases) {
	rows := phaseRows("Lessor", ours, river)
	if river != nil {
		rows = append(rows, phaseRows("River", river, river)...)
	}
	b.table("|jobs/s|lowest|highest|CPU µs per job|times River|CPU µs per job, database", rows)
	if river == nil {
		b.verdict(true, "no peer to compare with")
		return
	}
	over := func(of func(phases) shared) float64 {
		return median(own(each(ours, of)), cost.rate) / median(own(each(river, of)), cost.rate)
	}
	b.atLeast("Lessor over River, insert", over(inserted), insertBound)
	b.atLeast("Lessor over River, insert and work", over(both), batchBound)
}

func phaseRows(name string, rounds, river []phases) (rows []string) {
	for _, p := range []struct {
		name string
		of   func(phases) shared
	}{{"insert", inserted}, {"work", worked}, {"both", both}} {
		var peer []shared
		if river != nil {
			peer = each(river, p.of)
		}
		rows = append(rows, sharedRow(name+", "+p.name, each(rounds, p.of), peer))
	}
	return rows
}

func inserted(p phases) shared { return p.insert }
func worked(p phases) shared   { return p.work }

// both is the cost of a job from its insert to its end.
func both(p phases) shared {
	add := func(a, b cost) cost { return cost{ops: a.ops, wall: a.wall + b.wall, cpu: a.cpu + b.cpu} }
	return shared{own: add(p.insert.own, p.work.own), database: add(p.insert.database, p.work.database)}
}

func each(rounds []phases, of func(phases) shared) (all []shared) {
	for _, r := range rounds {
		all = append(all, of(r))
	}
	return all
}

// batchesPG runs jobs in batches on a fresh database.
func (b *bench) batchesPG(ctx context.Context, db *database, jobs int) (p phases, err error) {
	cluster, err := b.startNodes(ctx, db, 1, nil)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, cluster.end(ctx)) }()
	s := cluster.nodes[0]
	if err := s.submitBatches(ctx, bulk); err != nil { // warm-up
		return p, err
	}
	if err := s.workBatches(ctx, bulk); err != nil {
		return p, err
	}
	if p.insert, err = db.measure(jobs, func() error { return s.submitBatches(ctx, jobs) }); err != nil {
		return p, err
	}
	p.work, err = db.measure(jobs, func() error { return s.workBatches(ctx, jobs) })
	return p, err
}

func (s *server) submitBatches(ctx context.Context, jobs int) error {
	typ := "bench"
	return concurrently(ctx, batchCallers, (jobs+bulk-1)/bulk, func(ctx context.Context, _, item int) error {
		subs := make([]lessor.Submission, min(bulk, jobs-item*bulk))
		for i := range subs {
			subs[i] = lessor.Submission{Type: &typ, Payload: []byte(payload)}
		}
		_, err := s.SubmitBatch(ctx, subs)
		return err
	})
}

// workBatches takes and completes jobs.
func (s *server) workBatches(ctx context.Context, jobs int) error {
	workers, completed := workerNames(batchCallers), "completed"
	return concurrently(ctx, batchCallers, jobs/maxLeases, func(ctx context.Context, caller, _ int) error {
		for left := maxLeases; left > 0; { // another caller may have taken more
			grants, denial, err := s.Request(ctx, lessor.LeaseRequest{
				WorkerID: &workers[caller], MaxLeases: new(int64(left)),
			})
			if err != nil {
				return err
			}
			if denial != nil {
				return fmt.Errorf("%w: %s", errNoGrant, denial.Reason)
			}
			left -= len(grants)
			ends := make([]lessor.LeaseCompletion, len(grants))
			for i, g := range grants {
				ends[i] = lessor.LeaseCompletion{LeaseID: new(g.Lease.ID.String()), Status: &completed}
			}
			answers, err := s.CompleteAll(ctx, workers[caller], ends)
			if err != nil {
				return err
			}
			for _, a := range answers {
				if a.Err != nil {
					return a.Err
				}
			}
		}
		return nil
	})
}
