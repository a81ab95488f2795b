package main

import (
	"context"
	"errors"
	"fmt"

	"lessor"
)

const (
	beatCallers = 64
	beatBound   = 10.0 // times less a call than alone
)

// beats measures what group commit gives: the heartbeats of many callers share a commit, and with it an fsync.
func beats(ctx context.Context, b *bench) (err error) {
	held := b.size.of(10_000, 10_000, 200)
	calls := b.size.of(3_000, 500, 20) // of one caller
	rounds := b.size.of(5, 3, 1)
	s, err := b.start(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	b.note("beats: taking %d leases", held)
	leases, err := s.hold(ctx, held)
	if err != nil {
		return err
	}
	var alone, together []cost
	for r := range rounds {
		b.note("beats: round %d of %d", r+1, rounds)
		c, err := s.beat(ctx, leases, 1, calls)
		if err != nil {
			return err
		}
		alone = append(alone, c)
		if c, err = s.beat(ctx, leases, beatCallers, calls*beatCallers/4); err != nil {
			return err
		}
		together = append(together, c)
	}
	b.setting("%d leases held; each caller beats leases of its own, one after the other; %d rounds in turns, medians", held, rounds)
	b.setting("wall is elapsed time over calls: what a call costs the server, not how long a caller waits")
	b.table("|calls/s|wall µs a call|CPU µs a call", []string{
		beatRow("1 caller", alone), beatRow(fmt.Sprintf("%d callers", beatCallers), together),
	})
	b.atLeast(fmt.Sprintf("a call alone over a call of %d", beatCallers), median(alone, cost.wallUS)/median(together, cost.wallUS), beatBound)
	b.setting("CPU: %.1f times less a call", median(alone, cost.cpuUS)/median(together, cost.cpuUS))
	return nil
}

func beatRow(name string, rounds []cost) string {
	return fmt.Sprintf("%s|%.0f|%.1f|%.1f", name, median(rounds, cost.rate), median(rounds, cost.wallUS), median(rounds, cost.cpuUS))
}

// beat makes calls heartbeats. Each is for another lease than the one before: a second heartbeat of a lease in the same
// millisecond changes nothing, and SQLite then has nothing to sync.
func (s *server) beat(ctx context.Context, leases []lessor.LeaseID, callers, calls int) (cost, error) {
	turns := make([]int, callers)
	beat := func(ctx context.Context, caller, _ int) error {
		id := leases[(turns[caller]*callers+caller)%len(leases)]
		turns[caller]++
		_, err := s.Heartbeat(ctx, id, lessor.Heartbeat{WorkerID: &beater})
		return err
	}
	if err := concurrently(ctx, callers, callers*10, beat); err != nil { // warm-up
		return cost{}, err
	}
	return measure(calls, func() error { return concurrently(ctx, callers, calls, beat) })
}
