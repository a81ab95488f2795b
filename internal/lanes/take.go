package lanes

import "lessor/internal/rules"

// Take grants a pick: it removes the job from its line, charges its tenant and class, and counts the lease. A pick that
// is no longer queued is not granted, and the zero Turn is returned; p must come from this index.
func (x *Index) Take(p Pick) (t rules.Turn) {
	x.take(p.lane, p.Turn.Seq, &t)
	return t
}

// TakeSeq does the same for a grant that was decided elsewhere: another node's. It asks for no cap or lock, because the
// lease exists.
func (x *Index) TakeSeq(id rules.LaneID, seq int64) (t rules.Turn, ok bool) {
	ok = x.take(x.registry.find(id), seq, &t)
	return t, ok
}

func (x *Index) take(l *lane, seq int64, t *rules.Turn) bool {
	if !x.unqueue(l, seq, t) {
		return false
	}
	x.charge(l)
	x.count(l, 1)
	x.placeLane(l)
	return true
}

// Hold counts a live lease: one that was found at the start, or that another node granted. It returns false, and does
// nothing, if the lane is not known.
func (x *Index) Hold(id rules.LaneID) bool { return x.count(x.registry.find(id), 1) }

// Free ends a lease, as Hold began it. A count is below zero while the end of a lease has arrived before its grant.
func (x *Index) Free(id rules.LaneID) bool { return x.count(x.registry.find(id), -1) }

// count adds leases to everything that counts them, and places what that opened or closed.
func (x *Index) count(l *lane, leases int) bool {
	if l == nil {
		return false
	}
	c, t := l.classShare().class, l.classShare().share.tenant
	x.leases += leases
	x.units += leases * l.shape().units
	if l.lock != nil {
		was := l.lock.held()
		l.lock.holders += leases
		if l.lock.held() != was {
			for _, o := range l.lock.lanes {
				x.placeLane(o)
			}
		}
	}
	was := c.open()
	c.running += leases
	if c.open() != was {
		x.placeClass(c)
	}
	was = t.open()
	t.running += leases
	t.units += leases * l.shape().units
	if t.open() != was {
		x.placeTenant(t)
	}
	return true
}
