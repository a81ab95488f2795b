package rules

import "time"

// The size of a page of retention. The smallest, twenty times a second, is more than a slow disk completes; the largest is as
// much as a transaction should hold.
const (
	MinRetainPage = 250
	MaxRetainPage = 4000
)

// A page that took less than quickPage may be larger, one that took more than slowPage was too large: calls wait for it.
const (
	quickPage = 15 * time.Millisecond
	slowPage  = 40 * time.Millisecond
)

// RetainPage returns how many jobs the next page of retention may remove, after one of size last that took so long and
// was full or not. It is never less than a quarter more than the attempts that ended since, so that what is removed keeps up with
// what ends.
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

// LanesToGo sorts out lanes that no job refers to. used are those that some job refers to; noticed are the lanes that were on notice
// before that was found out, with the number of their notice, and before is the same of the last look. A lane goes if it is under the same notice as at
// the last look: nobody has registered it since. One that is under none is put on notice.
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
