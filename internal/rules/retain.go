package rules

import "time"

// The bounds of a page of retention. The smallest, twenty times a second, removes more jobs than a slow disk completes;
// the largest is as much as a transaction should hold.
const (
	MinRetainPage = 250
	MaxRetainPage = 4000
)

// A page may grow if it took less than quickPage and shrinks if it took more than slowPage, because calls wait for it.
const (
	quickPage = 15 * time.Millisecond
	slowPage  = 40 * time.Millisecond
)

// RetainPage returns how many jobs the next page of retention may remove, after a page of size last. full says whether
// that page was full, ended how many attempts have ended since. The page is at least a quarter larger than ended, so
// that retention keeps up.
func RetainPage(last int, took time.Duration, full bool, ended int) int {
	next := last
	switch {
	case took > slowPage:
		next = last / 2
	case full && took < quickPage:
		next = 2 * last
	}
	return min(max(next, MinRetainPage, ended+ended/4), MaxRetainPage)
}

// LanesToGo decides about lanes that no job refers to. used are the lanes that some job refers to. noticed has the
// number of each lane's notice, read before used; before has the numbers of the last round. A lane whose notice is
// still the same was not registered since, and goes. A lane without a notice gets one.
func LanesToGo(all []LaneID, used map[LaneID]bool, noticed, before map[LaneID]int64) (notice, gone []LaneID) {
	for _, id := range all {
		switch n := noticed[id]; {
		case used[id]:
		case n == 0:
			notice = append(notice, id)
		case n == before[id]:
			gone = append(gone, id)
		}
	}
	return notice, gone
}
