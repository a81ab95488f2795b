package lanes

import (
	"fmt"
	"runtime"
	"testing"

	"lessor"
	"lessor/internal/rules"
)

// BenchmarkTurn is one job's way through the index: next, take, free, and another comes into the same lane.
func BenchmarkTurn(b *testing.B) {
	b.Run("one_tenant", func(b *testing.B) {
		x := New(nil)
		benchTurns(b, x, fill(x, 1, 1, 1, 1000), &Filter{Usable: 1000})
	})
	// Half of the tenants are at their cap.
	b.Run("10k_tenants_1M_jobs", func(b *testing.B) {
		before := heapMB()
		x := New(func(id lessor.TenantID) Policy {
			if id.UUID[15]%2 == 0 {
				return Policy{Cap: 5}
			}
			return Policy{}
		})
		seq := fill(x, 10_000, 2, 3, 1_000_000)
		for _, l := range x.lanes.items {
			if t := l.classShare().share.tenant; t.policy.Cap > 0 && t.open() {
				for range 5 {
					x.Hold(l.id)
				}
			}
		}
		mb := heapMB() - before
		benchTurns(b, x, seq, &Filter{Usable: 1000})
		b.ReportMetric(mb, "MB")
	})
	// A worker that asks for three of 3,000 types.
	b.Run("3_of_3000_types", func(b *testing.B) {
		x := New(nil)
		seq := fill(x, 100, 1, 3000, 300_000)
		benchTurns(b, x, seq, &Filter{Usable: 1000, Types: []string{"type7", "type70", "type700"}})
	})
	// The same with a worker that asks for all.
	b.Run("3000_of_3000_types", func(b *testing.B) {
		x := New(nil)
		benchTurns(b, x, fill(x, 100, 1, 3000, 300_000), &Filter{Usable: 1000})
	})
	// 100,000 lanes with a lock key each; every take locks one and every free opens it.
	b.Run("100k_locks", func(b *testing.B) {
		x := New(nil)
		before := heapMB()
		var seq int64
		for i := range 100_000 {
			id := rules.LaneID(i + 1)
			x.Add(id, rules.Lane{Type: "t", Units: 1, LockKey: fmt.Sprint("key", i)})
			seq++
			x.Enqueue(rules.Turn{Lane: id, Seq: seq})
		}
		mb := heapMB() - before
		benchTurns(b, x, seq, &Filter{Usable: 1000})
		b.ReportMetric(mb, "MB")
	})
}

// BenchmarkRebuild is a million jobs read from the tables.
func BenchmarkRebuild(b *testing.B) {
	for b.Loop() {
		fill(New(nil), 10_000, 2, 3, 1_000_000)
	}
}

func benchTurns(b *testing.B, x *Index, seq int64, f *Filter) {
	b.ReportAllocs()
	for b.Loop() {
		p, ok := x.Next(f)
		if !ok {
			b.Fatal("nothing to grant")
		}
		t := x.Take(p)
		x.Free(t.Lane)
		seq++
		t.Seq = seq
		x.Enqueue(t)
	}
}

// fill spreads jobs over tenants, then classes and types, and returns the last seq.
func fill(x *Index, tenants, classes, types, jobs int) int64 {
	lanes := map[[3]int]rules.LaneID{}
	for i := range jobs {
		k := [3]int{i % tenants, i / tenants % classes, i / tenants % types}
		id := lanes[k]
		if id == 0 {
			id = rules.LaneID(len(lanes) + 1)
			lanes[k] = id
			x.Add(id, rules.Lane{
				Tenant: tenantID(k[0]), Class: fmt.Sprint("class", k[1]), Priority: lessor.Normal,
				Type: fmt.Sprint("type", k[2]), Units: 1,
			})
		}
		x.Enqueue(rules.Turn{Lane: id, Seq: int64(i + 1), MaxAttempts: 5})
	}
	return int64(jobs)
}

func tenantID(n int) lessor.TenantID {
	return lessor.TenantID{UUID: lessor.UUID{0: 1, 12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}}
}

func heapMB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}
