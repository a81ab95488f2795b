package lanes

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lessor"
	"lessor/internal/rules"
)

func TestIndexAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }, t.Fatalf)
		steps := map[string]func(*rapid.T){
			"":              func(*rapid.T) { m.check() },
			"enqueue":       func(*rapid.T) { m.enqueue() },
			"enqueue more":  func(*rapid.T) { m.enqueue(); m.o.settle(); m.enqueue() },
			"take":          func(*rapid.T) { m.take() },
			"take more":     func(*rapid.T) { m.take(); m.o.settle(); m.take() },
			"takeSeq":       func(*rapid.T) { m.takeSeq() },
			"free":          func(*rapid.T) { m.free() },
			"hold":          func(*rapid.T) { m.hold() },
			"remove":        func(*rapid.T) { m.remove() },
			"setTenant":     func(*rapid.T) { m.setTenant() },
			"setClass":      func(*rapid.T) { m.setClass() },
			"setDefinition": func(*rapid.T) { m.setDefinition() },
		}
		for range 3 { // 30 steps each, on average
			t.Repeat(steps)
		}
	})
}

// TestIndexAgreesWithOracleForLong takes the same steps in sequences that are too long for shrinking.
func TestIndexAgreesWithOracleForLong(t *testing.T) {
	steps := 3000
	if testing.Short() {
		steps = 500
	}
	for seed := range uint64(6) {
		runLong(t, seed, steps)
	}
}

func runLong(t *testing.T, seed uint64, steps int) *machine {
	r := rand.New(rand.NewPCG(seed, 1))
	step := 0
	m := newMachine(func(_ string, n int) int { return r.IntN(n) }, func(format string, args ...any) {
		t.Helper()
		t.Fatalf("seed %d, step %d: "+format, append([]any{seed, step}, args...)...)
	})
	ops := []struct {
		share int
		do    func()
	}{
		{30, m.enqueue},
		{30, m.take},
		{26, m.free},
		{2, m.takeSeq},
		{1, m.hold},
		{4, m.remove},
		{1, m.setTenant},
		{2, m.setClass},
		{3, m.setDefinition},
	}
	for ; step < steps; step++ {
		if len(m.o.queued) > 150 {
			m.remove() // or the oracle takes too long
			m.o.settle()
		}
		at := r.IntN(99)
		for _, op := range ops {
			if at -= op.share; at < 0 {
				op.do()
				break
			}
		}
		if m.o.settle(); step%5 == 0 {
			m.check()
		}
	}
	return m
}

func TestRebuildGivesSameCounts(t *testing.T) {
	for seed := range uint64(5) {
		m := runLong(t, 100+seed, 600)
		again := New(func(id lessor.TenantID) Policy { return m.o.policy[id] })
		for id, l := range m.o.lanes {
			again.Add(id, l)
		}
		for k, p := range m.o.class {
			again.SetClass(k.Tenant, k.Name, p)
		}
		for k, blocked := range m.o.blocked {
			again.SetDefinition(k.Tenant, k.Name, blocked)
		}
		for _, h := range m.o.held {
			again.Hold(h.Lane)
		}
		rand.Shuffle(len(m.o.queued), func(i, j int) { m.o.queued[i], m.o.queued[j] = m.o.queued[j], m.o.queued[i] })
		for _, q := range m.o.queued {
			again.Enqueue(q)
		}
		checkHeaps(again, t.Fatalf)
		if diff := cmp.Diff(m.x.Counts(), again.Counts()); diff != "" {
			t.Fatalf("seed %d: counts (-old +rebuilt):\n%s", seed, diff)
		}
		for _, q := range m.o.queued {
			if m.x.Eligible(q.Lane, q.Seq) != again.Eligible(q.Lane, q.Seq) {
				t.Fatalf("seed %d: job %d is eligible in one only", seed, q.Seq)
			}
		}
	}
}

func TestLaneOfAnyNumberIsKnownOnceAdded(t *testing.T) {
	x := New(nil)
	x.Add(300, rules.Lane{Type: "x", Units: 1})
	for _, id := range []rules.LaneID{-300, -1, 0, 299, 301, 1 << 40, -1 << 63} {
		if x.Known(id) {
			t.Errorf("lane %d is known", id)
		}
		if _, ok := x.Place(id, 1); ok {
			t.Errorf("a job of lane %d has a place", id)
		}
		if x.Eligible(id, 1) {
			t.Errorf("a job of lane %d is eligible", id)
		}
	}
	for _, id := range []rules.LaneID{300, 1 << 50, -7} {
		x.Add(id, rules.Lane{Type: "x", Units: 1})
		if !x.Known(id) {
			t.Errorf("lane %d is not known", id)
		}
	}
}

// TestUnknownLaneTakesNothing: rows come from a database, and may name any lane.
func TestUnknownLaneTakesNothing(t *testing.T) {
	x := New(nil)
	x.Add(7, rules.Lane{Priority: lessor.Priority(lessor.Priorities), Units: 1})
	for _, id := range []rules.LaneID{0, 1, 7, -1, 1 << 40} {
		if x.Enqueue(rules.Turn{Lane: id, Seq: 1}) || x.Hold(id) || x.Free(id) {
			t.Errorf("lane %d, which is not known, took a job or a lease", id)
		}
		_, removed := x.Remove(id, 1)
		_, taken := x.TakeSeq(id, 1)
		if removed || taken || x.Eligible(id, 1) || x.Blocked(id).Any() || x.Lane(id) != (rules.Lane{}) {
			t.Errorf("lane %d, which is not known, has something", id)
		}
	}
	if x.Leases() != 0 || x.Leased() != 0 {
		t.Errorf("%d leases of %d units are counted, want none", x.Leases(), x.Leased())
	}
}
