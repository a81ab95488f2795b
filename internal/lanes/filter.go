package lanes

import (
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// Filter is what a request can be granted. What it skips keeps its place. A request that asks again should keep its
// Filter, which remembers the shapes of its types, and with them the index, until it asks another. Its fields may
// change.
type Filter struct {
	Types      []string // empty = all
	MaxUnits   int      // 0 = any
	Usable     int      // jobs needing more are skipped; so 0 skips all
	SkipUnique bool
	Tenant     *lessor.TenantID // nil = all

	matched *matched // of several types; nil = not looked up yet
}

// matched are the shapes of types in an index that has a number of shapes. It is never changed in place, so that a copy
// of a Filter has its own.
type matched struct {
	shapes [lessor.Priorities][]*shape
	types  []string
	index  *Index
	of     int
}

// limit is the most units a job may need.
func (f *Filter) limit() int {
	limit := f.MaxUnits
	if limit == 0 {
		limit = math.MaxInt
	}
	return min(limit, f.Usable)
}

// Takes reports whether f skips no job of a lane.
func (f *Filter) Takes(l *rules.Lane) bool {
	return (len(f.Types) == 0 || slices.Contains(f.Types, l.Type)) && (f.Tenant == nil || *f.Tenant == l.Tenant) &&
		l.Units <= f.limit() && !(l.Unique && f.SkipUnique)
}

// match returns the shapes of a priority whose type was asked for.
func (f *Filter) match(x *Index, p int) []*shape {
	switch m := f.matched; {
	case len(f.Types) == 0:
		return x.anyType[p]
	case len(f.Types) == 1:
		return x.ofType(f.Types[0])[p]
	case m == nil || m.index != x || m.of != len(x.shapes) || !slices.Equal(m.types, f.Types):
		f.matched = x.matching(f.Types)
	}
	return f.matched.shapes[p]
}

func (x *Index) matching(types []string) *matched {
	m := &matched{types: slices.Clone(types), index: x, of: len(x.shapes)}
	for _, typ := range slices.Compact(slices.Sorted(slices.Values(types))) {
		for p, shapes := range x.ofType(typ) {
			m.shapes[p] = append(m.shapes[p], shapes...)
		}
	}
	return m
}

func (x *Index) ofType(typ string) [lessor.Priorities][]*shape {
	if of := x.byType[typ]; of != nil {
		return *of
	}
	return [lessor.Priorities][]*shape{}
}
