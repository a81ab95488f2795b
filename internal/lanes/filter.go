package lanes

import (
	"math"
	"slices"

	"lessor"
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

	// matched are the shapes of Types, as of a number of shapes of one index. They are never changed in place, so that
	// a copy of a Filter has its own.
	matched [lessor.Priorities][]*shape
	index   *Index
	shapes  int
	types   []string
}

// limit is the most units a job may need.
func (f *Filter) limit() int {
	limit := f.MaxUnits
	if limit == 0 {
		limit = math.MaxInt
	}
	return min(limit, f.Usable)
}

// match returns the shapes of a priority whose type was asked for.
func (f *Filter) match(x *Index, p int) []*shape {
	if len(f.Types) == 0 {
		return x.anyType[p]
	}
	if f.index != x || f.shapes != len(x.shapes) || !slices.Equal(f.types, f.Types) {
		f.index, f.shapes, f.types = x, len(x.shapes), slices.Clone(f.Types)
		f.matched = [lessor.Priorities][]*shape{}
		for _, typ := range slices.Compact(slices.Sorted(slices.Values(f.Types))) {
			for p, shapes := range x.ofType(typ) {
				f.matched[p] = append(f.matched[p], shapes...)
			}
		}
	}
	return f.matched[p]
}

func (x *Index) ofType(typ string) [lessor.Priorities][]*shape {
	if of := x.byType[typ]; of != nil {
		return *of
	}
	return [lessor.Priorities][]*shape{}
}
