//go:build unix

package sqlite

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// perOp runs fn in one transaction per iteration, and reports the time of each of the n operations that fn makes.
func perOp(b *testing.B, s *Store, n int, fn func(scheduler.Tx) error) {
	b.ReportAllocs()
	start, iterations := cpu(b), 0
	for b.Loop() {
		if err := s.Update(b.Context(), fn); err != nil {
			b.Fatal(err)
		}
		iterations++
	}
	ops := float64(iterations * n)
	b.ReportMetric(float64(b.Elapsed().Microseconds())/ops, "µs/op")
	b.ReportMetric(float64((cpu(b)-start).Microseconds())/ops, "cpu-µs/op")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLifecycle commits n submissions, grants, first heartbeats and ends in each transaction, at synchronous FULL.
// An op is the whole life of one job.
func BenchmarkLifecycle(b *testing.B) {
	for _, n := range []int{64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := openAt(b, Config{Synchronous: "FULL"})
			ctx := b.Context()
			var submitted []*rules.Spec
			var granted, running []lessor.LeaseID
			perOp(b, s, n, func(tx scheduler.Tx) error {
				if err := beat(ctx, tx, granted); err != nil {
					return err
				}
				if err := finish(ctx, tx, running, completed); err != nil {
					return err
				}
				specs := drafts(n)
				if err := submit(ctx, tx, specs); err != nil {
					return err
				}
				held, err := grant(ctx, tx, submitted)
				submitted, granted, running = specs, leaseIDs(held), granted
				return err
			})
		})
	}
}

// BenchmarkBeat commits heartbeats at synchronous FULL, for 1 and for 64 leases per transaction, which shows the gain
// of group commit.
func BenchmarkBeat(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var clock testClock
			cfg := clock.config()
			cfg.Synchronous = "FULL"
			s := openAt(b, cfg)
			ids := leaseIDs(leased(b, s, 1000))[:n]
			perOp(b, s, n, func(tx scheduler.Tx) error {
				clock.advance(time.Millisecond) // a heartbeat that changes nothing is not written
				return beat(b.Context(), tx, ids)
			})
		})
	}
}

// BenchmarkAppend commits heartbeats at synchronous FULL, 20 per transaction, for 5,000 leases in turn: once without
// journal entries, and once with an entry of 1 KiB each.
func BenchmarkAppend(b *testing.B) {
	const n, all = 20, 5000
	for _, size := range []int{0, 1 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var clock testClock
			cfg := clock.config()
			cfg.Synchronous = "FULL"
			s := openAt(b, cfg)
			held := leased(b, s, all)
			data, next := bytes.Repeat([]byte("x"), size), 0
			perOp(b, s, n, func(tx scheduler.Tx) error {
				clock.advance(time.Millisecond)
				first := next % all
				var entries []rules.Entry
				for _, h := range held[first : first+n] {
					h.Journal.Entries = next/all + 1
					e := rules.Entry{Job: h.Turn.Job, Seq: h.Turn.Seq, Size: h.Journal}
					e.N, e.Key, e.Kind, e.Data = e.Size.Entries, fmt.Sprint("step-", next), "step", data
					entries = append(entries, e)
					next++
				}
				if err := beat(b.Context(), tx, leaseIDs(held[first:first+n])); err != nil || size == 0 {
					return err
				}
				return tx.AppendEntries(b.Context(), entries)
			})
		})
	}
}
