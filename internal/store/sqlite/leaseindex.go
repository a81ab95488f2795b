package sqlite

import (
	"cmp"
	"slices"
	"sync"
)

// leaseIndex finds the leases of jobs by their seqs, for the writer and for views. An index in the file would cost a
// page for each grant from a long queue.
//
// It returns candidates, and the snapshot decides: of each job the lease that is live now, and those that ended while a
// view is open that may still see them. A lease is in the index before its commit is visible, and leaves it when every
// view that began before its end is over. So a lease that a snapshot shows is always among the candidates.
type leaseIndex struct {
	mu    sync.Mutex
	live  map[int64]int64 // seq to number
	ended []endedLease    // in the order of their ends
	fresh int             // the number of those that the running transaction ended, at the end of the list
	now   int64           // counts commits
	views map[int64]int   // the number of open views by the commit at which they began
}

// endedLease is a lease that ended with a commit: no later snapshot shows it.
type endedLease struct{ seq, n, commit int64 }

func newLeaseIndex() *leaseIndex { return &leaseIndex{live: map[int64]int64{}, views: map[int64]int{}} }

// add adds a lease, unless its job has another that is live.
func (x *leaseIndex) add(seq, n int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, twice := x.live[seq]; twice {
		return false
	}
	x.live[seq] = n
	return true
}

// end notes that a lease ends with the running transaction.
func (x *leaseIndex) end(seq, n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.live, seq)
	x.ended = append(x.ended, endedLease{seq: seq, n: n})
	x.fresh++
}

// keep ends a transaction that was committed, and removes the leases that no view can see any more.
func (x *leaseIndex) keep() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now++
	for i := range x.fresh {
		x.ended[len(x.ended)-1-i].commit = x.now
	}
	x.fresh = 0
	first := x.now
	for commit := range x.views {
		first = min(first, commit)
	}
	n := 0
	for n < len(x.ended) && x.ended[n].commit <= first {
		n++
	}
	x.ended = slices.Delete(x.ended, 0, n)
}

// unadd removes an added lease.
func (x *leaseIndex) unadd(seq int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.live, seq)
}

// unend undoes the last end.
func (x *leaseIndex) unend() {
	x.mu.Lock()
	defer x.mu.Unlock()
	last := x.ended[len(x.ended)-1]
	x.ended, x.fresh = x.ended[:len(x.ended)-1], x.fresh-1
	x.live[last.seq] = last.n
}

// enter is called before a view takes its snapshot; leave gets its result when the view is over.
func (x *leaseIndex) enter() (commit int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.views[x.now]++
	return x.now
}

func (x *leaseIndex) leave(commit int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.views[commit]--; x.views[commit] == 0 {
		delete(x.views, commit)
	}
}

// find returns the leases that a job may have, the newest first.
func (x *leaseIndex) find(seq int64) (ns []int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n, ok := x.live[seq]; ok {
		ns = append(ns, n)
	}
	for _, e := range slices.Backward(x.ended) {
		if e.seq == seq {
			ns = append(ns, e.n)
		}
	}
	return ns
}

// before returns all candidates of jobs below a seq, the highest seq first.
func (x *leaseIndex) before(seq int64) []endedLease {
	x.mu.Lock()
	var all []endedLease
	for s, n := range x.live {
		if s < seq {
			all = append(all, endedLease{seq: s, n: n})
		}
	}
	for _, e := range x.ended {
		if e.seq < seq {
			all = append(all, e)
		}
	}
	x.mu.Unlock()
	slices.SortFunc(all, func(a, b endedLease) int { return cmp.Or(cmp.Compare(b.seq, a.seq), cmp.Compare(b.n, a.n)) })
	return all
}
