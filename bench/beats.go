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

// beats measures what group commit gives: the heartbeats of many callers share a commit, and with it an fsync. The bound is
// held with many leases, whose rows lie pages apart; few are shown beside it.
func beats(ctx context.Context, b *bench) error {
	many, few := b.size.of(10_000, 10_000, 200), b.size.of(1_000, 1_000, 100)
	rounds := b.size.of(5, 3, 1)
	b.setting("each caller beats leases of its own, one after the other; %d rounds in turns, medians", rounds)
	b.setting("wall is elapsed time over calls: what a call costs the server, not how long a caller waits")
	var rows []string
	var wall, cpu float64
	for _, held := range []int{few, many} {
		alone, together, err := b.beatInTurns(ctx, held, rounds)
		if err != nil {
			return err
		}
		rows = append(rows, beatRow(held, 1, alone), beatRow(held, beatCallers, together))
		wall = median(alone, cost.wallUS) / median(together, cost.wallUS)
		cpu = median(alone, cost.cpuUS) / median(together, cost.cpuUS)
		if held == few {
			b.setting("%d leases held: a call of %d callers costs %.1f times less than one alone, CPU %.1f times", held, beatCallers, wall, cpu)
		}
	}
	b.table("leases held|callers|calls/s|wall µs a call|CPU µs a call", rows)
	b.atLeast(fmt.Sprintf("a call alone over a call of %d, %d leases held", beatCallers, many), wall, beatBound)
	b.setting("CPU: %.1f times less a call", cpu)
	return nil
}

// beatInTurns measures one caller and many in turns, on a server of their own.
func (b *bench) beatInTurns(ctx context.Context, held, rounds int) (alone, together []cost, err error) {
	calls := b.size.of(3_000, 500, 20) // of one caller
	s, err := b.start(ctx, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	b.note("beats: taking %d leases", held)
	leases, err := s.hold(ctx, held)
	if err != nil {
		return nil, nil, err
	}
	for r := range rounds {
		b.note("beats: round %d of %d", r+1, rounds)
		c, err := s.beat(ctx, leases, 1, calls)
		if err != nil {
			return nil, nil, err
		}
		alone = append(alone, c)
		if c, err = s.beat(ctx, leases, beatCallers, calls*beatCallers/4); err != nil {
			return nil, nil, err
		}
		together = append(together, c)
	}
	return alone, together, nil
}

func beatRow(held, callers int, rounds []cost) string {
	return fmt.Sprintf("%d|%d|%.0f|%.1f|%.1f", held, callers,
		median(rounds, cost.rate), median(rounds, cost.wallUS), median(rounds, cost.cpuUS))
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
