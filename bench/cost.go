package main

import (
	"cmp"
	"runtime"
	"slices"
	"time"
)

// cost is what a number of operations took.
type cost struct {
	ops  int
	wall time.Duration
	cpu  time.Duration // user and system time of this process
}

// measure runs fn, which does ops operations. Garbage of the phase before is not charged to it.
func measure(ops int, fn func() error) (cost, error) {
	runtime.GC()
	return timed(ops, fn)
}

// timed is measure for parts of a phase, where a collection in between would cost more than what is measured.
func timed(ops int, fn func() error) (cost, error) {
	cpu, start := cpuTime(), time.Now()
	err := fn()
	return cost{ops: ops, wall: time.Since(start), cpu: cpuTime() - cpu}, err
}

func (c cost) plus(d cost) cost {
	return cost{ops: c.ops + d.ops, wall: c.wall + d.wall, cpu: c.cpu + d.cpu}
}

func (c cost) rate() float64   { return float64(c.ops) / c.wall.Seconds() }
func (c cost) wallUS() float64 { return perOp(c.wall, c.ops) }
func (c cost) cpuUS() float64  { return perOp(c.cpu, c.ops) }
func perOp(d time.Duration, ops int) float64 {
	return float64(d.Nanoseconds()) / 1000 / float64(ops)
}

// median returns the middle one of several rounds by what by returns; of an even number, the one before the middle.
func median(rounds []cost, by func(cost) float64) float64 {
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b cost) int { return cmp.Compare(by(a), by(b)) })
	return by(sorted[(len(sorted)-1)/2])
}
