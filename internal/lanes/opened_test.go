package lanes

import (
	"slices"
	"testing"

	"lessor"
	"lessor/internal/rules"
)

func opened(x *Index) (types []string) {
	x.Opened(func(_ lessor.TenantID, typ string) { types = append(types, typ) })
	slices.Sort(types)
	return types
}

func TestOpenedReturnsWhatBecameGrantable(t *testing.T) {
	tenant := lessor.TenantID{UUID: lessor.UUID{1}}
	x := New(func(lessor.TenantID) Policy { return Policy{Cap: 2} })
	for id, l := range map[rules.LaneID]rules.Lane{
		1: {Tenant: tenant, Class: "c", Type: "a", Units: 1},
		2: {Tenant: tenant, Class: "c", Type: "b", Units: 1, LockKey: "k"},
		3: {Tenant: tenant, Class: "c", Type: "d", Units: 1, Definition: "def"},
	} {
		x.Add(id, l)
	}
	seq := int64(0)
	queue := func(lane rules.LaneID) func() {
		return func() { seq++; x.Enqueue(rules.Turn{Lane: lane, Seq: seq}) }
	}
	take := func() {
		pick, ok := x.Next(&Filter{Usable: 10})
		if !ok {
			t.Fatal("nothing can be granted")
		}
		x.Take(pick)
	}
	for _, c := range []struct {
		what string
		do   func()
		want []string
	}{
		{"the first of a type", queue(1), []string{"a"}},
		{"one more", queue(1), nil},
		{"a grant", take, nil},
		{"a job whose lock is free", queue(2), []string{"b"}},
		{"a second lease, which reaches the cap", take, nil},
		{"a job of a tenant at its cap", queue(1), nil},
		{"a lease less than the cap", func() { x.Free(1) }, []string{"a", "b"}},
		{"the lock is taken", func() { x.Hold(2) }, nil},
		{"the lock is free and the cap is not reached", func() { x.Free(2) }, []string{"a", "b"}},
		{"a definition is blocked", func() { x.SetDefinition(tenant, "def", true) }, nil},
		{"a job of it", queue(3), nil},
		{"it is let go", func() { x.SetDefinition(tenant, "def", false) }, []string{"d"}},
		{"the tenant is paused", func() { x.SetTenant(tenant, Policy{Paused: true}) }, nil},
		{"and resumed", func() { x.SetTenant(tenant, Policy{}) }, []string{"a", "b", "d"}},
	} {
		c.do()
		if got := opened(x); !slices.Equal(got, c.want) {
			t.Errorf("%s: opened %v, want %v", c.what, got, c.want)
		}
	}
}
