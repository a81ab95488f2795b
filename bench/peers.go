package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A peer is a system that does the same work: jobs that are enqueued, then taken and completed; work that is held and
// kept alive; jobs that start while a worker waits. What a peer cannot do has no figure.
type peer struct {
	name, about string
	version     []string // the command that prints the version of its program; nil = it is a Go module
	// widths are degrees of parallelism; the fastest is used.
	widths []int
	start  func(ctx context.Context, b *bench, width int) (peerRun, error)
}

// peerRun is a fresh instance of a peer.
type peerRun interface {
	enqueue(ctx context.Context, jobs int) error
	work(ctx context.Context, jobs int) error
	cpuTime() time.Duration // of its server
	end() error
}

// keeper holds work and keeps it alive.
type keeper interface {
	hold(ctx context.Context, n int) error
	beat(ctx context.Context, beats int) error
}

// starter can start jobs one by one, as they come.
type starter interface {
	latency(jobs int) *latencyRun
}

var errOnlyBeats = errors.New("it runs no jobs")

// peerFigures are the figures of one peer; a zero is none.
type peerFigures struct {
	peer
	width                      int
	enqueue, work, life, beats []cost  // CPU: all processes
	p50, p99                   float64 // ms
	missing                    string
}

// compare runs all peers in turns.
func compare(ctx context.Context, b *bench, db *database) error {
	jobs, rounds := b.size.of(30_000, 10_000, 1_000), b.size.of(5, 3, 1)
	var all []*peerFigures
	for _, p := range b.selected(peersOn(db)) {
		f := &peerFigures{peer: p}
		b.note("peers: %s", p.name)
		if err := b.widen(ctx, f, jobs/5); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, f)
	}
	present := slices.DeleteFunc(slices.Clone(all), func(f *peerFigures) bool { return f.missing != "" })
	for r := range rounds {
		for _, f := range present {
			b.note("peers: round %d of %d: %s", r+1, rounds, f.name)
			if err := errors.Join(b.measureLife(ctx, f, jobs), b.measureBeats(ctx, f)); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	for _, f := range present {
		if err := b.measureLatency(ctx, f); err != nil {
			return fmt.Errorf("%s: latency: %w", f.name, err)
		}
	}
	return b.publish(ctx, all, jobs, rounds, db.version)
}

// selected is all peers, or, without -peers, those that are Lessor.
func (b *bench) selected(all []peer) []peer {
	if b.peers {
		return all
	}
	return slices.DeleteFunc(all, func(p peer) bool { return !strings.HasPrefix(p.name, "Lessor") })
}

// widen finds the parallelism with which a peer is fastest.
func (b *bench) widen(ctx context.Context, f *peerFigures, jobs int) error {
	widths := f.widths
	if b.size == smoke {
		widths = widths[:1]
	}
	if len(widths) == 1 {
		jobs = min(jobs, bulk) // only to see whether it runs
	}
	best := 0.0
	f.width = widths[0]
	for _, width := range widths {
		try := &peerFigures{peer: f.peer, width: width}
		err := b.measureLife(ctx, try, jobs)
		if errors.Is(err, errMissing) {
			f.missing = err.Error()
			return nil
		}
		if err != nil {
			return err
		}
		if len(try.life) > 0 && try.life[0].rate() > best {
			best, f.width = try.life[0].rate(), width
		}
	}
	return nil
}

func (b *bench) measureLife(ctx context.Context, f *peerFigures, jobs int) (err error) {
	run, err := f.start(ctx, b, f.width)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.end()) }()
	enqueue, err := measureWith(run, jobs, func() error { return run.enqueue(ctx, jobs) })
	if errors.Is(err, errOnlyBeats) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	work, err := measureWith(run, jobs, func() error { return run.work(ctx, jobs) })
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	both := cost{ops: jobs, wall: enqueue.wall + work.wall, cpu: enqueue.cpu + work.cpu}
	f.enqueue, f.work, f.life = append(f.enqueue, enqueue), append(f.work, work), append(f.life, both)
	return nil
}

func (b *bench) measureBeats(ctx context.Context, f *peerFigures) (err error) {
	held, beats := b.size.of(10_000, 2_000, 200), b.size.of(200_000, 20_000, 400)
	run, err := f.start(ctx, b, f.width)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.end()) }()
	k, ok := run.(keeper)
	if !ok {
		return nil
	}
	if err := k.hold(ctx, held); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	c, err := measureWith(run, beats, func() error { return k.beat(ctx, beats) })
	if err != nil {
		return fmt.Errorf("heartbeats: %w", err)
	}
	f.beats = append(f.beats, c)
	return nil
}

func (b *bench) measureLatency(ctx context.Context, f *peerFigures) error {
	l, err := b.startJobs(ctx, f.peer, max(f.width, 2*latencyWorkers), b.size.of(20, 5, 1)*latencyRate)
	if err == nil && l != nil {
		f.p50, f.p99 = percentile(l.waited, 50), percentile(l.waited, 99)
	}
	return err
}

// measureWith is measure that adds the CPU time of the peer's server.
func measureWith(run peerRun, ops int, fn func() error) (cost, error) {
	before := run.cpuTime()
	c, err := measure(ops, fn)
	c.cpu += run.cpuTime() - before
	return c, err
}
