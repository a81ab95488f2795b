package worker

import (
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Heartbeat records when the work last made progress. The work calls Beat, a Watchdog reads Elapsed, and observers
// such as a LeaseExtender are called at every beat. The zero value is ready to use; until the first beat, time counts
// from the first call of any method. Heartbeat is safe for concurrent use, measures monotonic time, and must not be
// copied.
type Heartbeat struct {
	begin sync.Once
	start time.Time
	last  atomic.Int64 // nanoseconds from start to the latest beat

	change    sync.Mutex                  // serializes edit; not locked while observers run
	observers atomic.Pointer[[]*observer] // replaced, never changed in place, so that beats need no lock
}

// resolution is the precision of Elapsed. If every beat wrote, goroutines that beat at once would contend for a cache
// line.
const resolution = time.Microsecond

// observer is called with the time from the heartbeat's start to the beat.
type observer struct{ beat func(at time.Duration) }

// Beat records progress and calls the observers, in the order in which they were added and in the goroutine of the
// caller. The panic of an observer is logged and stops neither the other observers nor the caller.
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

// Observe makes every beat call fn, after the observers added before, until remove is called. A beat in progress may
// still call fn after remove has returned. Several goroutines may call fn at once.
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
