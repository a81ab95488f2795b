package main

import (
	"cmp"
	"runtime"
	"slices"
	"time"
)

// cost is the time that a number of operations took.
type cost struct {
	ops  int
	wall time.Duration
	cpu  time.Duration // user and system time of this process
}

// measure runs fn, which does ops operations. It collects the garbage of the previous phase first.
func measure(ops int, fn func() error) (cost, error) {
	runtime.GC()
	return timed(ops, fn)
}

// timed is measure without a garbage collection, for parts that are shorter than one.
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

// median returns the median of by over the rounds; of an even number of rounds, the lower one.
func median(rounds []cost, by func(cost) float64) float64 {
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b cost) int { return cmp.Compare(by(a), by(b)) })
	return by(sorted[(len(sorted)-1)/2])
}
