package main

import (
	"container/heap"
	"context"
	"iter"
	"slices"
	"time"
)

// task is a coroutine: a part of a node, a worker, or another caller. One task runs at a time, until it sleeps
// or waits; the world then picks the next.
type task struct {
	world *world
	name  string
	node  *node         // the process that it is a part of; nil = none of ours
	in    *node         // the process that answers its call now; nil = none
	inAt  time.Duration // since when

	*coroutine
	ended bool // its coroutine may run another task

	at    time.Duration // when it goes on
	tie   uint64        // its order among those that go on at the same moment
	index int           // in the queue; -1 = it waits for done, or it runs
	done  <-chan struct{}
	got   bool // done has received
}

// crashed is the panic by which the code of a process that is dead leaves a task.
type crashed struct{}

// coroutine runs one task after the other. Its stack stays as large as it had to grow.
type coroutine struct {
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	stop  func()
	run   func()
}

// coroutine returns one that will run fn, from next on.
func (w *world) coroutine(fn func()) *coroutine {
	if n := len(w.idle) - 1; n >= 0 {
		c := w.idle[n]
		w.idle = w.idle[:n]
		c.run = fn
		return c
	}
	c := &coroutine{run: fn}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		for c.yield = yield; ; {
			c.run()
			w.idle = append(w.idle, c)
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

// spawn adds a task that begins now. A task of a process ends silently when the process dies.
func (w *world) spawn(name string, n *node, run func(t *task)) *task {
	t := &task{world: w, name: name, node: n, index: -1}
	t.coroutine = w.coroutine(func() {
		defer func() {
			t.ended = true
			if v := recover(); v != nil {
				if _, dead := v.(crashed); !dead {
					w.panicked(t, v)
				}
			}
		}()
		t.mustLive()
		run(t)
	})
	w.wake(t, w.now)
	return t
}

// resume runs the task until it sleeps, waits or ends.
func (t *task) resume() {
	if !t.ended {
		t.next()
	}
}

// process is the process whose code the task runs; nil = none of ours.
func (t *task) process() *node {
	if t.in != nil {
		return t.in
	}
	return t.node
}

// mustLive leaves the code of a process that is dead, and everything at the end of the world.
func (t *task) mustLive() {
	if p := t.process(); t.world.over || p != nil && p.dead {
		panic(crashed{})
	}
}

// sleep lets others run for a time.
func (t *task) sleep(d time.Duration) {
	t.world.wake(t, t.world.now+d)
	t.yield(struct{}{})
	t.mustLive()
}

// await waits until done receives; false means that ctx was done first.
func (t *task) await(ctx context.Context, done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return true
		default:
		}
		if ctx.Err() != nil {
			return false
		}
		t.mustLive()
		p := t.process()
		t.done, t.got = done, false
		p.waiting = append(p.waiting, t)
		t.yield(struct{}{})
		t.done = nil
		t.mustLive()
		if t.got {
			return true
		}
	}
}

// pause waits until done receives, for a time at most, or until the caller has gone.
func (t *task) pause(ctx context.Context, done <-chan struct{}, most time.Duration) {
	if ctx.Err() != nil {
		return
	}
	t.mustLive()
	p := t.process()
	t.done, t.got = done, false
	p.waiting = append(p.waiting, t)
	t.sleep(most)
	p.waiting = slices.DeleteFunc(p.waiting, func(o *task) bool { return o == t })
	t.done = nil
}

// wake has a task go on at a moment.
func (w *world) wake(t *task, at time.Duration) {
	t.at, t.tie = at, w.random.Uint64()
	if t.index >= 0 {
		heap.Fix(&w.queue, t.index)
	} else {
		heap.Push(&w.queue, t)
	}
}

// step lets the next task go on, and reports whether there was one before end.
func (w *world) step(end time.Duration) bool {
	if len(w.queue) == 0 || w.queue[0].at > end || w.failure != nil {
		return false
	}
	t := w.queue[0]
	p := t.process()
	if p != nil && p.pausedUntil > t.at && !p.dead && !w.over {
		w.wake(t, p.pausedUntil)
		return true
	}
	heap.Pop(&w.queue)
	w.now = max(w.now, t.at)
	w.current = t
	t.resume()
	w.current = nil
	w.counts.Steps++
	w.trace.step(w.now, t)
	if p != nil {
		p.settle()
	}
	if q := t.process(); q != nil && q != p { // the one that it has come to
		q.settle()
	}
	return true
}

// queue is the heap of the tasks that sleep.
type queue []*task

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].tie < q[j].tie
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push adds a task, as container/heap asks.
func (q *queue) Push(x any) {
	t := x.(*task) //nolint:errcheck // only tasks are pushed
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop removes the last element, as container/heap asks.
func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	*q = old[:len(old)-1]
	t.index = -1
	return t
}
