package main

import (
	"context"
	"errors"
	"fmt"

	"lessor"
)

const (
	beatCallers = 64
	beatBound   = 10.0 // times cheaper than a call of one caller
)

// beats measures the gain of group commit: the heartbeats of many callers share a commit, and with it an fsync. The
// bound applies to many leases, whose rows lie pages apart; few leases are shown for comparison.
func beats(ctx context.Context, b *bench) error {
	many, few := b.size.of(10_000, 10_000, 200), b.size.of(1_000, 1_000, 100)
	rounds := b.size.of(5, 3, 1)
	b.setting("each caller sends heartbeats for leases of its own, in sequence; %d alternating rounds, medians", rounds)
	b.setting("wall is elapsed time divided by calls: the cost for the server, not the time that a caller waits")
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
			b.setting("%d leases held: a call of %d callers costs %.1f times less than one alone, CPU %.1f times",
				held, beatCallers, wall, cpu)
		}
	}
	b.table("leases held|callers|calls/s|wall µs per call|CPU µs per call", rows)
	b.atLeast(fmt.Sprintf("a call alone over a call of %d, %d leases held", beatCallers, many), wall, beatBound)
	b.setting("CPU: %.1f times less per call", cpu)
	return nil
}

// beatInTurns measures one caller and many callers alternately on a fresh server.
func (b *bench) beatInTurns(ctx context.Context, held, rounds int) (alone, together []cost, err error) {
	calls := b.size.of(3_000, 500, 20) // of one caller
	s, err := b.start(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	b.note("beats: taking %d leases", held)
	leases, err := s.hold(ctx, held, nobody)
	if err != nil {
		return nil, nil, err
	}
	all, err := alternate(b, "beats", rounds,
		func() (cost, error) { return s.beat(ctx, leases, 1, calls) },
		func() (cost, error) { return s.beat(ctx, leases, beatCallers, calls*beatCallers/4) })
	if err != nil {
		return nil, nil, err
	}
	return all[0], all[1], nil
}

func beatRow(held, callers int, rounds []cost) string {
	return fmt.Sprintf("%d|%d|%.0f|%.1f|%.1f", held, callers,
		median(rounds, cost.rate), median(rounds, cost.wallUS), median(rounds, cost.cpuUS))
}

// beat sends the given number of heartbeats. Each is for another lease than the one before: a second heartbeat of a
// lease in the same millisecond changes nothing, and SQLite would have nothing to sync.
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
