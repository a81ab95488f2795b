package sqlite

import (
	"cmp"
	"slices"
	"sync"
)

// leaseIndex finds the leases of jobs by their seqs, for the writer and for views. An index in the file would be a page to
// write for each grant from a long queue, as the rows that are left in it would be: see line.
//
// It answers with candidates, and the snapshot decides: of each job the lease that is live now, and those that ended while a
// view is open that may still see them. A lease is in it before its commit can be seen, and leaves it when every view that
// began before its end is over; so a lease that a snapshot shows is always among the candidates.
type leaseIndex struct {
	mu    sync.Mutex
	live  map[int64]int64 // seq to number
	ended []endedLease    // in the order of their ends
	fresh int             // of these, those of the running transaction, at the end
	now   int64           // counts commits
	views map[int64]int   // how many views are open that began at a commit
}

// endedLease is a lease that no snapshot shows which was taken after a commit.
type endedLease struct{ seq, n, commit int64 }

func newLeaseIndex() *leaseIndex { return &leaseIndex{live: map[int64]int64{}, views: map[int64]int{}} }

// add takes in a lease, unless its job has another that is live.
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

// keep ends a transaction that was committed, and forgets what nobody can see any more.
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

// unadd takes an added lease back.
func (x *leaseIndex) unadd(seq int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.live, seq)
}

// unend takes the last end back.
func (x *leaseIndex) unend() {
	x.mu.Lock()
	defer x.mu.Unlock()
	last := x.ended[len(x.ended)-1]
	x.ended, x.fresh = x.ended[:len(x.ended)-1], x.fresh-1
	x.live[last.seq] = last.n
}

// enter is called before a view takes its snapshot, and leave with what it returned when the view is over.
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
