package scheduler

import (
	"context"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

// fold is what the tables amount to: the order of turns, who holds what, and when to look at which lease. It follows
// every commit and can be rebuilt from the tables at any time; no row is kept for it.
type fold struct {
	index   *lanes.Index
	lanes   map[rules.Lane]rules.LaneID // those that new jobs may be stored under: see lanesweep.go
	holders map[rules.Holder]holding
	looks   lookHeap
	serving rules.Serving

	position   Position       // how far the changes of other nodes are in it
	metAt      lessor.Instant // when there was last one
	followedAt time.Time      // when they were last looked for, on this node's clock
	delta      *delta         // what this pass does to it, for other nodes; nil = there are none

	strays   []stray // rows that no lane has, as far as the last rebuild saw
	hindered hindrances
	alerted  map[alertOf]bool // definitions about which an alert is open that this node may have to clear
	sweptAt  lessor.Instant
	judgedAt lessor.Instant // when all leases were last looked at for the brake
	latest   lessor.Instant // what the clock last said
	resetAt  lessor.Instant // when it was last found to have been set back
	dueAt    lessor.Instant // when the next waiting job is due; 0 = none waits
	tickAt   lessor.Instant // when the next tick is due; 0 = none
	trialAt  lessor.Instant // when the next open circuit may be tried; 0 = none
	retainAt lessor.Instant

	// What may let parked requests have a lease, besides the turns that the index has opened.
	woke    bool           // whichever it is: settings changed
	freed   bool           // one that lacks capacity
	touched []rules.Holder // those of workers that gave a lease back, or were granted one on another node
}

// holding is what one worker holds.
type holding struct{ leases, units int }

// rebuild folds the tables anew.
func (l *loop) rebuild(ctx context.Context) error {
	f := l.newFold()
	err := l.store.View(ctx, func(v View) error {
		if err := l.load(ctx, v, f); err != nil {
			return err
		}
		if err := l.unheard(ctx, v); err != nil {
			return err
		}
		return l.loadSettings(ctx, v, f)
	})
	if err != nil {
		return fmt.Errorf("rebuild the fold: %w", err)
	}
	l.fold = f
	return nil
}

func (l *loop) newFold() *fold {
	return &fold{
		index: lanes.New(l.tenantPolicy), lanes: map[rules.Lane]rules.LaneID{}, holders: map[rules.Holder]holding{}, woke: true,
		hindered: hindrances{all: map[string]Hindrance{}, open: map[string]struct{}{}},
		alerted:  map[alertOf]bool{},
	}
}

// load folds what one snapshot shows.
func (l *loop) load(ctx context.Context, v View, f *fold) (err error) {
	if f.position, err = v.Position(ctx); err != nil {
		return err
	}
	noticed, err := v.NoticedLanes(ctx)
	if err != nil {
		return err
	}
	err = v.EachLane(ctx, func(id rules.LaneID, l rules.Lane) error {
		if f.index.Add(id, l); noticed[id] == 0 {
			f.lanes[l] = id
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The clock may have stepped since somebody last served: the floor will move then.
	f.latest = v.Now()
	serving := rules.Serve(v.Serving(), rules.Tick{}, rules.Tick{Wall: f.latest})
	err = v.EachLease(ctx, func(h *rules.Held) error {
		f.hold(h)
		f.strayed("lease", h.Turn)
		f.look(h.ID, rules.NextLook(h, f.latest, serving))
		return nil
	})
	if err != nil {
		return err
	}
	var waiting []lessor.JobID
	err = v.EachQueued(ctx, func(t rules.Turn) error {
		l.line(f, t)
		if !l.expects && len(waiting) < maxExpected && f.unclaimed(t) {
			waiting = append(waiting, t.Job)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := l.expectAgain(ctx, v, waiting); err != nil {
		return err
	}
	f.dueAt, err = v.NextDue(ctx)
	return err
}

// lanesOf gives each spec the number of its lane.
func (f *fold) lanesOf(ctx context.Context, tx Tx, specs []*rules.Spec) error {
	var unknown []rules.Lane
	asked := map[rules.Lane]bool{}
	for _, s := range specs {
		if _, ok := f.lanes[s.Lane]; !ok && !asked[s.Lane] {
			unknown, asked[s.Lane] = append(unknown, s.Lane), true
		}
	}
	if len(unknown) > 0 {
		ids, err := tx.Lanes(ctx, unknown)
		if err != nil {
			return err
		}
		for i, l := range unknown {
			f.lanes[l] = ids[i]
			f.index.Add(ids[i], l)
		}
	}
	for _, s := range specs {
		s.LaneID = f.lanes[s.Lane]
	}
	return nil
}

// The changes of this node's own commits; each is recorded for the other nodes.

func (f *fold) enqueue(t rules.Turn) {
	f.enqueues(t)
	if f.delta != nil {
		f.delta.queued(t)
	}
}

// remove takes a turn out of the queue that gets no lease.
func (f *fold) remove(t rules.Turn) {
	f.index.Remove(t.Lane, t.Seq)
	f.freed = true // it may have been what others had to leave capacity to
	if f.delta != nil {
		f.delta.removed(t.Lane, t.Seq)
	}
}

// drop counts a turn that was taken and gets no lease after all.
func (f *fold) drop(t rules.Turn) {
	f.index.Free(t.Lane)
	f.freed = true
	if f.delta != nil {
		f.delta.removed(t.Lane, t.Seq)
	}
}

// putBack returns a turn to its place that was taken and is to be decided about later. Other nodes never hear of it.
func (f *fold) putBack(t rules.Turn) {
	f.index.Free(t.Lane)
	f.index.Enqueue(t)
}

// waits notes that a job is due at an instant.
func (f *fold) waits(until lessor.Instant) {
	f.waitsUntil(until)
	if f.delta != nil {
		f.delta.waits(until)
	}
}

// grants counts a new lease, whose turn the index has given away already.
func (f *fold) grants(h *rules.Held, look lessor.Instant) {
	f.holds(h)
	f.look(h.ID, look)
	if f.delta != nil {
		f.delta.taken(h, look)
	}
}

// free gives back what a lease held.
func (f *fold) free(h *rules.Held) {
	f.frees(h)
	if f.delta != nil {
		f.delta.freed(h)
	}
}

// The same for changes of whichever node.

func (f *fold) waitsUntil(until lessor.Instant) {
	if f.dueAt == 0 || until < f.dueAt {
		f.dueAt = until
	}
}

// enqueues adds a turn. One behind an open circuit is not open to anybody, and may be its trial.
func (f *fold) enqueues(t rules.Turn) {
	f.index.Enqueue(t)
	if len(f.hindered.open) > 0 && f.index.Lane(t.Lane).Definition != "" {
		f.woke = true
	}
}

// hold counts a live lease whose job is not in the queue any more.
func (f *fold) hold(h *rules.Held) {
	f.index.Hold(h.Turn.Lane)
	f.holds(h)
}

func (f *fold) holds(h *rules.Held) { f.holder(h.Holder(), 1, h.Units) }

func (f *fold) frees(h *rules.Held) {
	f.index.Free(h.Turn.Lane)
	f.holder(h.Holder(), -1, -h.Units)
	f.freed = true
	f.touch(h)
}

// touch has requests of a lease's worker tried again.
func (f *fold) touch(h *rules.Held) {
	if len(f.touched) == maxTouched {
		f.woke, f.touched = true, f.touched[:0]
	}
	f.touched = append(f.touched, h.Holder())
}

// holder counts what a worker holds. With several nodes an end may be seen before its grant, so that a count may be below
// zero for a moment.
func (f *fold) holder(worker rules.Holder, leases, units int) {
	w := f.holders[worker]
	w = holding{w.leases + leases, w.units + units}
	if w == (holding{}) {
		delete(f.holders, worker)
		return
	}
	f.holders[worker] = w
}

func (f *fold) due(now lessor.Instant) bool { return f.dueAt != 0 && f.dueAt <= now }
