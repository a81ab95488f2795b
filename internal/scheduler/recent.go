package scheduler

import (
	"time"

	"lessor"
)

// recent keeps a value for each name, in the order in which the names were last seen, to within moveEvery. The zero
// value is empty. The values are the elements of its list, because each call looks one up: an element of its own would
// be one more load from memory.
type recent[V any] struct {
	byName       map[string]*seen[V]
	first, final *seen[V] // the latest and the oldest
}

// seen is what recent keeps. Its name is "" once it was dropped.
type seen[V any] struct {
	name         string
	at           lessor.Instant
	moved        lessor.Instant // when it was last put in front
	is           V
	newer, older *seen[V]
}

func (r *recent[V]) len() int { return len(r.byName) }

// find returns what is kept under name; nil if nothing is.
func (r *recent[V]) find(name string) *seen[V] { return r.byName[name] }

// moveEvery is how often a name is put in front that is seen all the time.
const moveEvery = time.Second

// see notes that name is seen again at an instant; nil if it is not kept.
func (r *recent[V]) see(name string, at lessor.Instant) *seen[V] {
	v := r.byName[name]
	if v == nil {
		return nil
	}
	v.at = max(v.at, at)
	if at.Sub(v.moved) >= moveEvery {
		v.moved = at
		r.unlink(v)
		r.putFirst(v)
	}
	return v
}

// add keeps a name that is not kept yet.
func (r *recent[V]) add(name string, at lessor.Instant) *seen[V] {
	if r.byName == nil {
		r.byName = map[string]*seen[V]{}
	}
	v := &seen[V]{name: name, at: at, moved: at}
	r.byName[name] = v
	r.putFirst(v)
	return v
}

// touch notes that name is seen at an instant, for the first time or again.
func (r *recent[V]) touch(name string, at lessor.Instant) *seen[V] {
	if v := r.see(name, at); v != nil {
		return v
	}
	return r.add(name, at)
}

// oldest returns what was not seen for longest; nil if nothing is kept.
func (r *recent[V]) oldest() *seen[V] { return r.final }

// latest is when anything was last seen; 0 if nothing is kept.
func (r *recent[V]) latest() lessor.Instant {
	if r.first == nil {
		return 0
	}
	return r.first.at
}

// drop forgets what was not seen for longest.
func (r *recent[V]) drop() {
	v := r.final
	delete(r.byName, v.name)
	r.unlink(v)
	v.name = ""
}

// each calls fn with all that is kept, the latest first, until it returns false.
func (r *recent[V]) each(fn func(*seen[V]) bool) {
	for v := r.first; v != nil && fn(v); v = v.older {
	}
}

// setBack counts what was seen on a clock that was ahead as seen now.
func (r *recent[V]) setBack(now lessor.Instant) {
	r.each(func(v *seen[V]) bool {
		v.at, v.moved = min(v.at, now), min(v.moved, now)
		return true
	})
}

func (r *recent[V]) putFirst(v *seen[V]) {
	v.newer, v.older = nil, r.first
	if r.first == nil {
		r.final = v
	} else {
		r.first.newer = v
	}
	r.first = v
}

func (r *recent[V]) unlink(v *seen[V]) {
	if v.newer == nil {
		r.first = v.older
	} else {
		v.newer.older = v.older
	}
	if v.older == nil {
		r.final = v.newer
	} else {
		v.older.newer = v.newer
	}
}
