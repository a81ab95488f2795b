package lanes

import (
	"slices"
	"testing"

	"lessor"
	"lessor/internal/rules"
)

var (
	acme = tenantID(1)
	bolt = tenantID(2)
)

// book builds an index. Its tests name what differs from the plain lane: tenant acme, type "x", 1 unit, normal.
type book struct {
	*Index
	seq int64
}

func newBook() *book { return &book{Index: New(nil)} }

func plain(change func(*rules.Lane)) rules.Lane {
	l := rules.Lane{Tenant: acme, Priority: lessor.Normal, Type: "x", Units: 1}
	if change != nil {
		change(&l)
	}
	return l
}

// lane finds or adds a lane.
func (b *book) lane(l rules.Lane) rules.LaneID {
	id := rules.LaneID(1)
	for ; b.Known(id); id++ {
		if b.Lane(id) == l {
			return id
		}
	}
	b.Add(id, l)
	return id
}

// submit queues jobs and returns the seq of the last.
func (b *book) submit(l rules.Lane, jobs int) int64 {
	id := b.lane(l)
	for range jobs {
		b.seq++
		b.Enqueue(rules.Turn{Lane: id, Seq: b.seq})
	}
	return b.seq
}

// grant takes the next job and returns its seq; 0 = there is none.
func (b *book) grant() rules.Turn {
	p, ok := b.Next(&Filter{Usable: 1 << 40})
	if !ok {
		return rules.Turn{}
	}
	return b.Take(p)
}

// grants takes n jobs, ending each at once, and returns their seqs.
func (b *book) grants(n int) (seqs []int64) {
	for range n {
		t := b.grant()
		seqs = append(seqs, t.Seq)
		if t.Seq != 0 {
			b.Free(t.Lane)
		}
	}
	return seqs
}

func TestOrderOfTurns(t *testing.T) {
	typed := func(typ string) rules.Lane { return plain(func(l *rules.Lane) { l.Type = typ }) }
	for _, c := range []struct {
		name  string
		setup func(*book)
		want  []int64
	}{
		{"first in, first out across lanes", func(b *book) {
			b.submit(typed("x"), 1)
			b.submit(typed("y"), 2)
			b.submit(typed("x"), 1)
		}, []int64{1, 2, 3, 4, 0}},
		{"strict priority", func(b *book) {
			for p := range lessor.Priorities {
				b.submit(plain(func(l *rules.Lane) { l.Priority = lessor.Priority(lessor.Priorities - 1 - p) }), 2)
			}
		}, []int64{7, 8, 5, 6, 3, 4, 1, 2, 0}},
		{"a retried job keeps its place", func(b *book) {
			b.submit(plain(nil), 3)
			first := b.grant()
			b.Free(first.Lane)
			b.Enqueue(first)
		}, []int64{1, 2, 3, 0}},
		{"a job that becomes visible late is in its place", func(b *book) {
			id := b.lane(plain(nil))
			for _, seq := range []int64{5, 9, 7, 2, 8} {
				b.Enqueue(rules.Turn{Lane: id, Seq: seq})
			}
		}, []int64{2, 5, 7, 8, 9, 0}},
		{"a job that is queued twice is there once", func(b *book) {
			id := b.lane(plain(nil))
			for _, seq := range []int64{1, 2, 1, 2} {
				b.Enqueue(rules.Turn{Lane: id, Seq: seq})
			}
		}, []int64{1, 2, 0}},
		{"a cancelled job is passed", func(b *book) {
			b.submit(plain(nil), 3)
			b.Remove(1, 1)
			b.Remove(1, 2)
		}, []int64{3, 0}},
		{"tenants by turns", func(b *book) {
			b.submit(plain(nil), 3)
			b.submit(plain(func(l *rules.Lane) { l.Tenant = bolt }), 3)
		}, []int64{1, 4, 2, 5, 3, 6, 0}},
		{"classes by turns", func(b *book) {
			b.submit(plain(nil), 3)
			b.submit(plain(func(l *rules.Lane) { l.Class = "c" }), 3)
		}, []int64{1, 4, 2, 5, 3, 6, 0}},
		{"units count", func(b *book) {
			b.submit(plain(func(l *rules.Lane) { l.Units = 2 }), 2)
			b.submit(plain(func(l *rules.Lane) { l.Tenant = bolt }), 4)
		}, []int64{1, 3, 4, 2, 5, 6, 0}},
		{"weights count", func(b *book) {
			b.SetTenant(bolt, Policy{Weight: 2})
			b.SetTenant(acme, Policy{Weight: 1})
			b.submit(plain(nil), 2)
			b.submit(plain(func(l *rules.Lane) { l.Tenant = bolt }), 4)
		}, []int64{1, 3, 4, 2, 5, 6, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			c.setup(b)
			if got := b.grants(len(c.want)); !slices.Equal(got, c.want) {
				t.Errorf("granted %v, want %v", got, c.want)
			}
		})
	}
}

// TestSkippedKeepsPlace skips an older job and grants a younger one, then unblocks the older job.
func TestSkippedKeepsPlace(t *testing.T) {
	all := Filter{Usable: 1 << 40}
	for _, c := range []struct {
		name    string
		lane    func(*rules.Lane) // of the older job
		block   func(*book)
		filter  Filter
		unblock func(*book)
	}{
		{name: "type not asked", filter: Filter{
			Usable: 9, Types: []string{"x"},
		}, lane: func(l *rules.Lane) { l.Type = "y" }},
		{name: "max units", filter: Filter{Usable: 9, MaxUnits: 1}, lane: func(l *rules.Lane) { l.Units = 2 }},
		{name: "usable", filter: Filter{Usable: 3}, lane: func(l *rules.Lane) { l.Units = 4 }},
		{name: "unique", filter: Filter{Usable: 9, SkipUnique: true}, lane: func(l *rules.Lane) { l.Unique = true }},
		{name: "other tenant", filter: Filter{Usable: 9, Tenant: &acme}, lane: func(l *rules.Lane) { l.Tenant = bolt }},
		{
			name: "tenant paused", filter: all, lane: func(l *rules.Lane) { l.Tenant = bolt },
			block:   func(b *book) { b.SetTenant(bolt, Policy{Paused: true}) },
			unblock: func(b *book) { b.SetTenant(bolt, Policy{}) },
		},
		{
			name: "tenant at cap", filter: all, lane: func(l *rules.Lane) { l.Tenant = bolt },
			block:   func(b *book) { b.SetTenant(bolt, Policy{Cap: 1}); b.Hold(1) },
			unblock: func(b *book) { b.Free(1) },
		},
		{
			name: "class paused", filter: all, lane: func(l *rules.Lane) { l.Class = "c" },
			block:   func(b *book) { b.SetClass(acme, "c", Policy{Paused: true}) },
			unblock: func(b *book) { b.SetClass(acme, "c", Policy{}) },
		},
		{
			name: "class at cap", filter: all, lane: func(l *rules.Lane) { l.Class = "c" },
			block:   func(b *book) { b.Hold(1); b.SetClass(acme, "c", Policy{Cap: 1}) },
			unblock: func(b *book) { b.Free(1) },
		},
		{
			name: "lock held", filter: all, lane: func(l *rules.Lane) { l.LockKey = "k" },
			block:   func(b *book) { b.Hold(1) },
			unblock: func(b *book) { b.Free(1) },
		},
		{
			name: "definition blocked", filter: all, lane: func(l *rules.Lane) { l.Definition = "d" },
			block:   func(b *book) { b.SetDefinition(acme, "d", true) },
			unblock: func(b *book) { b.SetDefinition(acme, "d", false) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			b.submit(plain(c.lane), 2)
			b.submit(plain(nil), 2)
			if c.block != nil {
				c.block(b)
			}
			p, ok := b.Next(&c.filter)
			if !ok || p.Turn.Seq != 3 {
				t.Fatalf("with the first held back, %d is next (%v), want 3", p.Turn.Seq, ok)
			}
			if blocked := b.Blocked(1).Any(); blocked != (c.block != nil) || b.Eligible(1, 1) == blocked {
				t.Errorf("blocks are %+v, eligible %v", b.Blocked(1), b.Eligible(1, 1))
			}
			if c.unblock != nil {
				c.unblock(b)
			}
			if place, _ := b.Place(1, 2); place != 2 {
				t.Errorf("the second job is in place %d", place)
			}
			b.wantNext(t, 1)
		})
	}
}

// wantNext checks that the first job of lane 1 is next for a request that its own type and tenant pass.
func (b *book) wantNext(t *testing.T, want int64) {
	t.Helper()
	l := b.Lane(1)
	p, ok := b.Next(&Filter{Usable: 1 << 40, Types: []string{l.Type}, Tenant: &l.Tenant})
	if !ok || p.Turn.Seq != want {
		t.Errorf("with nothing held back, %d is next (%v), want %d", p.Turn.Seq, ok, want)
	}
}

func TestZeroUsableSkipsAll(t *testing.T) {
	b := newBook()
	b.submit(plain(nil), 1)
	if p, ok := b.Next(&Filter{}); ok {
		t.Errorf("job %d is next without usable units", p.Turn.Seq)
	}
}

// TestLockHoldersAreACount: the end of another node's lease may arrive before its grant, and its grant beside our own.
func TestLockHoldersAreACount(t *testing.T) {
	b := newBook()
	locked := plain(func(l *rules.Lane) { l.LockKey = "k" })
	b.submit(locked, 2)
	id := b.lane(locked)
	eligible := func(want bool, holders int) {
		t.Helper()
		if got := b.Eligible(id, 1); got != want || b.LockHolders(acme, "k") != holders {
			t.Errorf("eligible is %v with %d holders, want %v with %d", got, b.LockHolders(acme, "k"), want, holders)
		}
	}
	eligible(true, 0)
	b.Hold(id)
	b.Hold(id)
	b.Free(id)
	eligible(false, 1)
	b.Free(id)
	eligible(true, 0)
	b.Free(id)
	eligible(true, -1)
	b.Hold(id)
	eligible(true, 0)
	b.Hold(id)
	eligible(false, 1)
}

func TestLockOfAnotherTenantIsAnother(t *testing.T) {
	b := newBook()
	b.submit(plain(func(l *rules.Lane) { l.LockKey = "k" }), 2)
	b.submit(plain(func(l *rules.Lane) { l.LockKey, l.Tenant = "k", bolt }), 2)
	for _, want := range []int64{1, 3, 0} {
		if got := b.grant().Seq; got != want {
			t.Errorf("granted %d, want %d", got, want)
		}
	}
}

// TestChangedFilterIsReadAgain changes a filter between requests, and the index under it.
func TestChangedFilterIsReadAgain(t *testing.T) {
	b := newBook()
	b.submit(plain(nil), 1)
	f := &Filter{Usable: 9, Types: []string{"y", "z"}}
	next := func(f *Filter, want int64) {
		t.Helper()
		if p, _ := b.Next(f); p.Turn.Seq != want {
			t.Errorf("%d is next, want %d", p.Turn.Seq, want)
		}
	}
	next(f, 0)
	b.submit(plain(func(l *rules.Lane) { l.Type = "z" }), 1)
	next(f, 2)
	g := *f
	g.Types = []string{"x"}
	next(&g, 1)
	next(f, 2)
	f.Types[1] = "x" // in place
	next(f, 1)
	b = newBook() // with as many shapes
	b.submit(plain(func(l *rules.Lane) { l.Type = "other" }), 1)
	b.submit(plain(nil), 1)
	next(f, 2)
	next(&g, 2)
}
