package lanes

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lessor"
	"lessor/internal/rules"
)

func of(tenant int) rules.Lane { return plain(func(l *rules.Lane) { l.Tenant = tenantID(tenant) }) }

// serve grants n jobs, each replaced by another in its lane so that no lane runs dry, and returns their tenants.
func (b *book) serve(n int) (whose []lessor.TenantID) {
	for range n {
		t := b.grant()
		if t.Seq == 0 {
			return whose
		}
		b.Free(t.Lane)
		whose = append(whose, b.Lane(t.Lane).Tenant)
		b.submit(b.Lane(t.Lane), 1)
	}
	return whose
}

func tally(whose []lessor.TenantID) map[lessor.TenantID]int {
	n := map[lessor.TenantID]int{}
	for _, id := range whose {
		n[id]++
	}
	return n
}

// TestEqualTenantsShareAnyWindow is P12: k backlogged tenants, each with jobs of one size, get 1/k ± 10 %
// (at least ± 1) of any 1000 grants, whatever they had before and however their jobs are spread over types and classes.
func TestEqualTenantsShareAnyWindow(t *testing.T) {
	for _, k := range []int{1, 2, 3, 7, 30, 300} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(k), 3))
			b := newBook()
			for tenant := range k {
				for lane := range 1 + r.IntN(4) {
					l := of(tenant)
					l.Type, l.Class, l.Units = fmt.Sprint(lane%2), fmt.Sprint(lane/2), 3
					b.submit(l, 1+r.IntN(20))
				}
				b.serve(r.IntN(50)) // the tenants before it have had some grants already
			}
			whose := b.serve(3000)
			slack := max(1, 1000/k/10)
			window := tally(whose[:1000])
			for i := 1000; ; i++ {
				for tenant := range k {
					if n := window[tenantID(tenant)]; n < 1000/k-slack || n > (1000+k-1)/k+slack {
						t.Fatalf("tenant %d got %d of the 1000 grants before %d, its share is %d", tenant, n, i, 1000/k)
					}
				}
				if i == len(whose) {
					break
				}
				window[whose[i]]++
				window[whose[i-1000]]--
			}
		})
	}
}

func TestWeightsAreRespected(t *testing.T) {
	b := newBook()
	weights := []int{1, 2, 5, 12}
	for tenant, w := range weights {
		b.SetTenant(tenantID(tenant), Policy{Weight: w})
		l := of(tenant)
		l.Units = 1 + tenant%2*2 // weights count units, not jobs
		b.submit(l, 10)
	}
	units := map[int]int{}
	for _, id := range b.serve(4000) {
		tenant := int(id.UUID[15])
		units[tenant] += 1 + tenant%2*2
	}
	total := units[0] + units[1] + units[2] + units[3]
	for tenant, w := range weights {
		want := total * w / 20
		if units[tenant] < want*98/100 || units[tenant] > want*102/100+3 {
			t.Errorf("weight %d got %d units of %d, want %d", w, units[tenant], total, want)
		}
	}
}

func TestClassWeightsAreRespected(t *testing.T) {
	b := newBook()
	b.SetClass(acme, "heavy", Policy{Weight: 3})
	for _, class := range []string{"heavy", "light"} {
		for _, typ := range []string{"x", "y"} {
			b.submit(plain(func(l *rules.Lane) { l.Class, l.Type = class, typ }), 500)
		}
	}
	n := map[string]int{}
	for range 400 {
		n[b.Lane(b.grant().Lane).Class]++
	}
	if n["heavy"] < 299 || n["heavy"] > 301 {
		t.Errorf("grants by class are %v, want 300 and 100", n)
	}
}

// TestLargestNumbersDoNotOverflow passes the point where virtual times are moved back many times.
func TestLargestNumbersDoNotOverflow(t *testing.T) {
	b := newBook()
	b.SetTenant(tenantID(1), Policy{Weight: 2})
	b.SetTenant(tenantID(2), Policy{Weight: 1_000_000})
	for tenant := range 3 {
		for _, class := range []string{"a", "b"} {
			l := of(tenant)
			l.Class, l.Units = class, 1<<30
			b.submit(l, 1)
		}
	}
	idle := of(3) // waits, and so falls far behind
	idle.Type = "idle"
	b.submit(idle, 1)
	f := &Filter{Usable: 1 << 40, Types: []string{"x"}}
	n := map[lessor.TenantID]int{}
	for range 3000 {
		p, _ := b.Next(f)
		b.Free(b.Take(p).Lane)
		b.submit(p.Lane, 1)
		n[p.Lane.Tenant]++
		if p.Lane.Tenant == tenantID(2) {
			b.SetTenant(tenantID(2), Policy{Weight: 1}) // one cheap grant, then dear ones
		}
	}
	if n[tenantID(0)] < 748 || n[tenantID(0)] > 752 || n[tenantID(1)] < 1498 || n[tenantID(1)] > 1502 {
		t.Errorf("weights 1, 2, 1 got %v of 3000", n)
	}
	checkHeaps(b.Index, t.Fatalf)
	for _, c := range []clock{b.clocks[lessor.Normal], b.stands.items[0].share.classes} {
		for _, own := range c.own {
			if own < -rebaseAt || own > 2*rebaseAt || c.v < 0 || c.v > rebaseAt {
				t.Errorf("virtual time is %d, V is %d", own, c.v)
			}
		}
	}
	if whose := b.serve(1); whose[0] != tenantID(3) {
		t.Errorf("%v is served before the one that waited", whose[0])
	}
}

// TestTenantCollectsNoCredit: a tenant that was away for any reason gets its share when it returns, and no more.
func TestTenantCollectsNoCredit(t *testing.T) {
	away := of(1)
	away.LockKey, away.Definition, away.Class = "k", "d", "c"
	for name, c := range map[string]struct{ leave, comeBack func(*book) }{
		"empty": {
			func(b *book) { b.Remove(b.lane(away), 2) },
			func(b *book) { b.submit(away, 1) },
		},
		"paused": {
			func(b *book) { b.SetTenant(away.Tenant, Policy{Paused: true}) },
			func(b *book) { b.SetTenant(away.Tenant, Policy{}) },
		},
		"capped": {
			func(b *book) { b.Hold(b.lane(away)); b.SetTenant(away.Tenant, Policy{Cap: 1}) },
			func(b *book) { b.SetTenant(away.Tenant, Policy{}); b.Free(b.lane(away)) },
		},
		"class paused": {
			func(b *book) { b.SetClass(away.Tenant, "c", Policy{Paused: true}) },
			func(b *book) { b.SetClass(away.Tenant, "c", Policy{}) },
		},
		"locked": {
			func(b *book) { b.Hold(b.lane(away)) },
			func(b *book) { b.Free(b.lane(away)) },
		},
		"definition blocked": {
			func(b *book) { b.SetDefinition(away.Tenant, "d", true) },
			func(b *book) { b.SetDefinition(away.Tenant, "d", false) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			b.submit(of(0), 1)
			b.submit(away, 1)
			c.leave(b)
			if n := tally(b.serve(500)); n[away.Tenant] != 0 {
				t.Fatalf("was served %d times while away", n[away.Tenant])
			}
			c.comeBack(b)
			if n := tally(b.serve(20)); n[away.Tenant] < 9 || n[away.Tenant] > 11 {
				t.Errorf("got %d of the first 20 grants after its return, want 10", n[away.Tenant])
			}
		})
	}
}

// TestClassCollectsNoCredit: a class of a tenant that was away gets its share when it returns, and no more.
func TestClassCollectsNoCredit(t *testing.T) {
	b := newBook()
	b.submit(plain(func(l *rules.Lane) { l.Class = "a" }), 600)
	b.SetClass(acme, "b", Policy{Paused: true})
	b.submit(plain(func(l *rules.Lane) { l.Class = "b" }), 600)
	b.grants(500)
	b.SetClass(acme, "b", Policy{})
	n := 0
	for _, seq := range b.grants(20) {
		if seq > 600 {
			n++
		}
	}
	if n < 9 || n > 11 {
		t.Errorf("class b got %d of the first 20 grants after its return, want 10", n)
	}
}

// TestPrioritiesHaveTheirOwnAccounts: a tenant that had many grants in high does not wait for them in low.
func TestPrioritiesHaveTheirOwnAccounts(t *testing.T) {
	b := newBook()
	high := of(0)
	high.Priority = lessor.High
	b.submit(high, 500)
	b.grants(500)
	for tenant := range 2 {
		l := of(tenant)
		l.Priority = lessor.Low
		b.submit(l, 1)
	}
	if n := tally(b.serve(20)); n[tenantID(0)] != 10 {
		t.Errorf("grants in low after 500 in high: %v, want 10 each", n)
	}
}

// TestRareTypeIsShared: V runs ahead by the grants of a busy type; tenants that wait for a rare one still take turns.
func TestRareTypeIsShared(t *testing.T) {
	b := newBook()
	b.submit(of(0), 1)
	for tenant := 1; tenant <= 3; tenant++ {
		l := of(tenant)
		l.Type = "rare"
		b.submit(l, 100)
	}
	n := map[lessor.TenantID]int{}
	busy, rare := &Filter{Usable: 9, Types: []string{"x"}}, &Filter{Usable: 9, Types: []string{"rare"}}
	for range 30 {
		for range 20 {
			p, _ := b.Next(busy)
			b.Free(b.Take(p).Lane)
			b.submit(of(0), 1)
		}
		p, _ := b.Next(rare)
		b.Take(p)
		n[p.Lane.Tenant]++
	}
	for tenant := 1; tenant <= 3; tenant++ {
		if n[tenantID(tenant)] != 10 {
			t.Errorf("grants of the rare type: %v, want 10 each", n)
		}
	}
}
