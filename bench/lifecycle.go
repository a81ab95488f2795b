package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"lessor"
)

const (
	lifecycleCallers = 512
	lifecycleTenants = 10_000
	lifecycleBound   = 5.0 // times the rate of River
	// payload is the payload of a job, for Lessor and for the peers.
	payload = `{"customer":"c-1029384","order":4711,"note":"forty bytes of text"}`
)

// lifecycle compares lifecycles of jobs with River. Rounds alternate, so that both see the same machine.
func lifecycle(ctx context.Context, b *bench) error {
	jobs := b.size.of(60_000, 10_000, 1_024)
	rounds := b.size.of(3, 1, 1)
	var best riverSetting
	if b.peers {
		var err error
		if best, err = b.tuneRiver(ctx, jobs/10); err != nil {
			return fmt.Errorf("river: %w", err)
		}
	}
	all, err := alternate(b, "lifecycle", rounds,
		func() (cost, error) { return b.lives(ctx, jobs, 0) },
		ofRiver(b, func() (cost, error) { return b.riverLives(ctx, jobs, best) }),
		func() (cost, error) { return b.lives(ctx, jobs, lifecycleTenants) })
	if err != nil {
		return err
	}
	b.setting("%d jobs per round, %d alternating rounds, medians; payload %d bytes; SQLite, WAL, synchronous=FULL",
		jobs, rounds, len(payload))
	b.setting("Lessor: %d callers through node, each Submit, Request, Heartbeat, Complete", lifecycleCallers)
	if b.peers {
		b.setting("River: insert and work, no heartbeats; %v; fetch cooldown and poll 1 ms; one connection", best)
	}
	b.lifecycleTable(all[0], all[2], all[1])
	return nil
}

func (b *bench) lifecycleTable(one, many, river []cost) {
	rows := []string{
		lifeRow("Lessor, one tenant", one, river),
		lifeRow(fmt.Sprintf("Lessor, %d tenants", lifecycleTenants), many, river),
	}
	if river != nil {
		rows = append(rows, lifeRow("River", river, river))
	}
	b.table("|jobs/s|lowest|highest|CPU µs per job|times River", rows)
	if river != nil {
		b.atLeast("Lessor over River", median(one, cost.rate)/median(river, cost.rate), lifecycleBound)
	}
}

func lifeRow(name string, rounds, river []cost) string {
	rate, low, high := median(rounds, cost.rate), rounds[0].rate(), rounds[0].rate()
	for _, r := range rounds {
		low, high = min(low, r.rate()), max(high, r.rate())
	}
	times := "–"
	if river != nil {
		times = fmt.Sprintf("%.1f", rate/median(river, cost.rate))
	}
	return fmt.Sprintf("%s|%.0f|%.0f|%.0f|%.1f|%s", name, rate, low, high, median(rounds, cost.cpuUS), times)
}

var errNoGrant = errors.New("there was no job for a caller that had just submitted one")

// lives runs lifecycles on a fresh server. If tenants is 0, the jobs have no tenant.
func (b *bench) lives(ctx context.Context, jobs, tenants int) (c cost, err error) {
	s, err := b.start(ctx, nil)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	workers := workerNames(lifecycleCallers)
	live := func(ctx context.Context, caller, item int) error {
		sub := lessor.Submission{Type: new("bench"), Payload: []byte(payload)}
		if tenants > 0 {
			sub.TenantID = new(tenantID(item % tenants))
		}
		return s.live(ctx, &workers[caller], sub)
	}
	if err := concurrently(ctx, lifecycleCallers, min(jobs/8, 2*lifecycleCallers), live); err != nil { // warm-up
		return c, err
	}
	return measure(jobs, func() error { return concurrently(ctx, lifecycleCallers, jobs, live) })
}

// live submits a job, and leases and completes one. The two may differ, because the oldest job is granted first.
func (s *server) live(ctx context.Context, worker *string, sub lessor.Submission) error {
	if _, err := s.SubmitJob(ctx, sub); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	wait := 5 * time.Second.Milliseconds() // never needed without caps: there is a queued job for each caller
	grants, denial, err := s.Request(ctx, lessor.LeaseRequest{WorkerID: worker, WaitMS: &wait})
	switch {
	case err != nil:
		return fmt.Errorf("request: %w", err)
	case denial != nil:
		return fmt.Errorf("%w: %s", errNoGrant, denial.Reason)
	}
	id := grants[0].Lease.ID
	if _, err := s.Heartbeat(ctx, id, lessor.Heartbeat{WorkerID: worker}); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return s.finish(ctx, id, worker)
}

func (s *server) finish(ctx context.Context, id lessor.LeaseID, worker *string) error {
	if err := s.Complete(ctx, id, lessor.Completion{WorkerID: worker, Status: new("completed")}); err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	return nil
}

// workerNames returns the names of n workers, made in advance so that making them is not measured.
func workerNames(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = "worker-" + strconv.Itoa(i)
	}
	return all
}

// tenantID returns the id of tenant i.
func tenantID(i int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", i+1) }
