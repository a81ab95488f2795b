package worker

import (
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Heartbeat knows when the work last moved. The work calls Beat, a Watchdog reads Elapsed, and observers such as a
// LeaseExtender are told of every beat. The zero value is ready; until the first beat it counts from its first use, whichever
// method that is. All methods may be called at once. Time is monotonic. It must not be copied.
type Heartbeat struct {
	begin sync.Once
	start time.Time
	last  atomic.Int64 // nanoseconds from start to the latest beat

	change    sync.Mutex                  // held by who changes the list, never while observers run
	observers atomic.Pointer[[]*observer] // never changed in place, so that beats need no lock
}

// resolution is how exact Elapsed is. Work that beats at once from many goroutines would wait for the processor's caches if
// each beat wrote.
const resolution = time.Microsecond

// observer is called with the time from the heartbeat's start to the beat.
type observer struct{ beat func(at time.Duration) }

// Beat records that the work moved and tells the observers, in the order in which they were added. One that panics is logged
// and stops neither the others nor the caller. Observers run in the caller's goroutine: Beat returns when they have.
func (h *Heartbeat) Beat() {
	at := h.age()
	for {
		last := h.last.Load()
		if int64(at)-last < int64(resolution) || h.last.CompareAndSwap(last, int64(at)) {
			break
		}
	}
	if list := h.observers.Load(); list != nil {
		for _, o := range *list {
			o.call(at)
		}
	}
}

// Elapsed returns the time since the latest beat.
func (h *Heartbeat) Elapsed() time.Duration {
	return max(0, h.age()-time.Duration(h.last.Load()))
}

// Observe has fn called at every beat, after those added before, until remove is called. A beat that is under way may still
// call fn after remove has returned. fn may be called from several goroutines at once.
func (h *Heartbeat) Observe(fn func()) (remove func()) {
	return h.observe(func(time.Duration) { fn() })
}

func (h *Heartbeat) observe(beat func(at time.Duration)) (remove func()) {
	h.age() // the first use
	o := &observer{beat}
	h.edit(func(list []*observer) []*observer { return append(list, o) })
	return func() {
		h.edit(func(list []*observer) []*observer {
			return slices.DeleteFunc(list, func(other *observer) bool { return other == o })
		})
	}
}

// edit replaces the list of observers by a changed copy.
func (h *Heartbeat) edit(change func([]*observer) []*observer) {
	h.change.Lock()
	defer h.change.Unlock()
	var list []*observer
	if old := h.observers.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = change(list)
	h.observers.Store(&list)
}

// age returns the time since the heartbeat's first use.
func (h *Heartbeat) age() time.Duration {
	h.begin.Do(func() { h.start = time.Now() })
	return time.Since(h.start)
}

func (o *observer) call(at time.Duration) {
	defer func() {
		if r := recover(); r != nil {
			slog.Error("An observer of a heartbeat panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	o.beat(at)
}
