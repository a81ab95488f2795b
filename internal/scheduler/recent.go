package scheduler

import (
	"container/list"
	"time"

	"lessor"
)

// recent keeps a value for each name, in the order in which the names were last seen, to within moveEvery. The zero
// value is empty.
type recent[V any] struct {
	byName map[string]*list.Element
	order  list.List // of *seen[V], the latest first
}

// seen is what recent keeps. Its name is "" once it was dropped.
type seen[V any] struct {
	name  string
	at    lessor.Instant
	moved lessor.Instant // when it was last put in front
	is    V
}

func (r *recent[V]) len() int { return len(r.byName) }

// find returns what is kept under name; nil if nothing is.
func (r *recent[V]) find(name string) *seen[V] {
	if e := r.byName[name]; e != nil {
		return value[V](e)
	}
	return nil
}

// moveEvery is how often a name is put in front that is seen all the time.
const moveEvery = time.Second

// see notes that name is seen again at an instant; nil if it is not kept.
func (r *recent[V]) see(name string, at lessor.Instant) *seen[V] {
	e := r.byName[name]
	if e == nil {
		return nil
	}
	v := value[V](e)
	v.at = max(v.at, at)
	if at.Sub(v.moved) >= moveEvery {
		v.moved = at
		r.order.MoveToFront(e)
	}
	return v
}

// add keeps a name that is not kept yet.
func (r *recent[V]) add(name string, at lessor.Instant) *seen[V] {
	if r.byName == nil {
		r.byName = map[string]*list.Element{}
	}
	v := &seen[V]{name: name, at: at, moved: at}
	r.byName[name] = r.order.PushFront(v)
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
func (r *recent[V]) oldest() *seen[V] {
	if e := r.order.Back(); e != nil {
		return value[V](e)
	}
	return nil
}

// latest is when anything was last seen; 0 if nothing is kept.
func (r *recent[V]) latest() lessor.Instant {
	if e := r.order.Front(); e != nil {
		return value[V](e).at
	}
	return 0
}

// drop forgets what was not seen for longest.
func (r *recent[V]) drop() {
	e := r.order.Back()
	v := value[V](e)
	delete(r.byName, v.name)
	r.order.Remove(e)
	v.name = ""
}

// each calls fn with all that is kept, the latest first, until it returns false.
func (r *recent[V]) each(fn func(*seen[V]) bool) {
	for e := r.order.Front(); e != nil && fn(value[V](e)); e = e.Next() {
	}
}

// setBack counts what was seen on a clock that was ahead as seen now.
func (r *recent[V]) setBack(now lessor.Instant) {
	r.each(func(v *seen[V]) bool {
		v.at, v.moved = min(v.at, now), min(v.moved, now)
		return true
	})
}

func value[V any](e *list.Element) *seen[V] { return e.Value.(*seen[V]) } //nolint:errcheck // only touch puts values in
