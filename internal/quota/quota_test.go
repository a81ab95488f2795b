package quota

import (
	"testing"

	"pgregory.net/rapid"

	"lessor"
)

func tenant(n byte) *lessor.TenantID { return &lessor.TenantID{UUID: lessor.UUID{n}} }

// fill takes single places for as long as there are any.
func fill(l *Limit, who *lessor.TenantID) (n int64) {
	for l.Enter(who, 1) {
		n++
	}
	return n
}

func TestNoTakerGetsMoreThanIsLeft(t *testing.T) {
	l := New(120)
	for i, want := range []int64{60, 30, 15} {
		if got := fill(l, tenant(byte(i+1))); got != want {
			t.Errorf("tenant %d got %d places, want %d", i+1, got, want)
		}
	}
	if !l.Enter(nil, 15) {
		t.Error("somebody who holds nothing is kept out although there is room")
	}
	if l.Enter(tenant(9), 1) || l.EnterSmall(tenant(9), 1) {
		t.Error("somebody got in although every place is taken")
	}
	l.Leave(tenant(1), 60)
	if got := fill(l, tenant(2)); got != 15 {
		t.Errorf("a tenant with 30 of its places while 60 are free got %d more, want 15", got)
	}
	if !l.EnterSmall(tenant(2), 1) {
		t.Error("something small is held to the share")
	}
}

func TestBoundariesOfALimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		own   int64
		other int64
		n     int64
		want  bool
	}{
		{"the first takes all", 0, 0, 100, true},
		{"more than all", 0, 0, 101, false},
		{"half of all", 49, 0, 1, true},
		{"one more than half", 50, 0, 1, false},
		{"the last place, for one who has none", 0, 99, 1, true},
		{"as much as is left", 10, 79, 0, true},
		{"more than is left", 10, 80, 1, false},
	} {
		l := New(100)
		l.by[*tenant(1)], l.by[*tenant(2)], l.taken = c.own, c.other, c.own+c.other
		if got := l.Enter(tenant(1), c.n); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPlacesAreCounted compares random comings and goings with a plain map.
func TestPlacesAreCounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l, in := New(40), map[byte]int64{}
		total := int64(0)
		rt.Repeat(map[string]func(*rapid.T){
			"enter": func(rt *rapid.T) {
				who, n := rapid.Byte().Draw(rt, "who")%4, rapid.Int64Range(1, 20).Draw(rt, "n")
				if l.Enter(tenant(who), n) {
					in[who] += n
					total += n
				}
				if total > 40 {
					rt.Fatalf("%d of 40 places are taken", total)
				}
			},
			"leave": func(rt *rapid.T) {
				who := rapid.Byte().Draw(rt, "who") % 4
				if n := in[who]; n > 0 {
					l.Leave(tenant(who), n)
					total -= n
					in[who] = 0
				}
			},
			"": func(rt *rapid.T) {
				if l.Taken() != total {
					rt.Fatalf("%d places are taken, want %d", l.Taken(), total)
				}
			},
		})
	})
}
