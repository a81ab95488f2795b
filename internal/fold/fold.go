package fold

import (
	"fmt"
	"reflect"

	"lessor"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

// Fold is the image of the tables in memory. The zero value is not usable; see New.
type Fold struct {
	Index   *lanes.Index
	Serving rules.Serving // what the store last noted about service

	// When something happens by itself; 0 = nothing is planned.
	DueAt   lessor.Instant // the next waiting job is due
	TickAt  lessor.Instant // the next tick is due
	TrialAt lessor.Instant // the next open circuit may be tried

	Waiting int // jobs that wait for an answer

	Position Position       // how far the changes of other nodes are applied
	OthersAt lessor.Instant // when one was last applied
	JudgedAt lessor.Instant // when the brake last counted all leases

	lanes   map[rules.Lane]rules.LaneID // those that new jobs may be stored under
	holders map[rules.Holder]Holding
	checks  checkHeap
	// unchecked are leases that have ended here whose checks are still in the heap.
	unchecked map[lessor.LeaseID]struct{}

	blocked blocks
	strays  []stray // rows of no known lane, as far as the rebuild saw
	inbox   inbox
	packer  *packer // packs what the commit at work does, for other nodes; nil = there are none
	woken   Woken
	called  []Called

	sweptAt  lessor.Instant // the last sweep
	restedAt lessor.Instant // the last sweep that left nothing to check
	latest   lessor.Instant // the last reading of the clock
	resetAt  lessor.Instant // when the clock was last found to have been set back
}

// Holding is what one worker holds.
type Holding struct{ Leases, Units int }

// New returns the fold of empty tables. policy is that of a tenant for which none was set.
func New(policy func(lessor.TenantID) lanes.Policy) *Fold {
	return &Fold{
		Index: lanes.New(policy), lanes: map[rules.Lane]rules.LaneID{}, holders: map[rules.Holder]Holding{},
		unchecked: map[lessor.LeaseID]struct{}{}, inbox: inbox{}, blocked: newBlocks(), woken: Woken{All: true},
	}
}

// Load adds a live lease that was read from its table, after LoadMessages and NoteClock.
func (f *Fold) Load(h *rules.Held, checkAt lessor.Instant) {
	f.Index.Hold(h.Turn.Lane)
	f.countHolder(h, 1)
	f.noteStray("lease", h.Turn)
	f.PlanCheck(h.ID, checkAt)
	if h.CancelAt != 0 {
		f.call(h, h.CancelAt, Cancelled)
	}
	if f.inbox[h.Turn.Job] > 0 {
		f.call(h, f.latest, Messaged)
	}
}

// LoadQueued adds a queued job that was read from its table.
func (f *Fold) LoadQueued(t rules.Turn) {
	f.Index.Enqueue(t)
	f.noteStray("queue", t)
}

// The changes of this node's own commits. Each is packed for the other nodes.

// Enqueue adds a turn to the queue.
func (f *Fold) Enqueue(t rules.Turn) {
	f.enqueue(t)
	if f.packer != nil {
		f.packer.queued(t)
	}
}

// Remove takes a turn that gets no lease out of the queue.
func (f *Fold) Remove(t rules.Turn) {
	f.remove(t)
	if f.packer != nil {
		f.packer.removed(t)
	}
}

// Reject counts a turn that the index has given away and that gets no lease after all.
func (f *Fold) Reject(t rules.Turn) {
	f.Index.Free(t.Lane)
	f.woken.Freed = true
	if f.packer != nil {
		f.packer.removed(t)
	}
}

// PutBack returns a turn that the index has given away to its place, to be decided about later. Other nodes are not
// told.
func (f *Fold) PutBack(t rules.Turn) {
	f.Index.Free(t.Lane)
	f.Index.Enqueue(t)
}

// Delay notes that a job waits until an instant.
func (f *Fold) Delay(until lessor.Instant) {
	f.delay(until)
	if f.packer != nil {
		f.packer.delayed(until)
	}
}

// Wait counts n more jobs that wait for an answer.
func (f *Fold) Wait(n int) {
	f.Waiting += n
	if f.packer != nil {
		f.packer.waiting(n)
	}
}

// Grant counts a new lease, whose turn the index has given away already.
func (f *Fold) Grant(h *rules.Held, checkAt lessor.Instant) {
	f.countHolder(h, 1)
	f.woken.Turned = true
	f.PlanCheck(h.ID, checkAt)
	if f.packer != nil {
		f.packer.taken(h, checkAt)
	}
}

// Free gives back what a lease held.
func (f *Fold) Free(h *rules.Held) {
	f.free(h)
	f.dropCheck(h.ID)
	if f.packer != nil {
		f.packer.freed(h)
	}
}

// Cancel notes that the worker of a lease was asked to stop.
func (f *Fold) Cancel(h *rules.Held) {
	f.call(h, h.CancelAt, Cancelled)
	if f.packer != nil {
		f.packer.called(stepCancelled, h, h.CancelAt)
	}
}

// TakeAway notes that a lease, which Free has counted, was taken from its worker.
func (f *Fold) TakeAway(h *rules.Held, at lessor.Instant) {
	f.call(h, at, TakenAway)
	if f.packer != nil {
		f.packer.called(stepTakenAway, h, at)
	}
}

// The same for the changes of any node.

// enqueue adds a turn. One behind an open circuit is open to no request, and may be the circuit's trial.
func (f *Fold) enqueue(t rules.Turn) {
	f.Index.Enqueue(t)
	f.woken.Turned = true
	if len(f.blocked.open) > 0 && f.Index.Lane(t.Lane).Definition != "" {
		f.woken.All = true
	}
}

func (f *Fold) remove(t rules.Turn) {
	f.Index.Remove(t.Lane, t.Seq)
	f.woken.Freed = true // other jobs may have had to leave capacity to it
}

func (f *Fold) delay(until lessor.Instant) {
	if f.DueAt == 0 || until < f.DueAt {
		f.DueAt = until
	}
}

func (f *Fold) free(h *rules.Held) {
	f.Index.Free(h.Turn.Lane)
	f.countHolder(h, -1)
	f.woken.Freed = true
	f.wakeWorker(h.Holder())
}

// countHolder counts what a lease's worker holds. With several nodes an end may arrive before its grant, so a count may
// be below zero for a moment.
func (f *Fold) countHolder(h *rules.Held, leases int) {
	w := f.holders[h.Holder()]
	w.Leases, w.Units = w.Leases+leases, w.Units+leases*h.Units
	if w == (Holding{}) {
		delete(f.holders, h.Holder())
		return
	}
	f.holders[h.Holder()] = w
}

// Holds returns what a worker holds.
func (f *Fold) Holds(worker rules.Holder) Holding { return f.holders[worker] }

// Due reports whether a waiting job is due.
func (f *Fold) Due(now lessor.Instant) bool { return f.DueAt != 0 && f.DueAt <= now }

// Differs says what f holds that the fold of the tables does not; nil if they are equal.
func (f *Fold) Differs(tables *Fold) error {
	if n := len(tables.strays); n > 0 {
		return fmt.Errorf("%d jobs have a lane that is not stored and cannot be granted, first %s", n, tables.strays[0])
	}
	if have, want := f.Index.Counts(), tables.Index.Counts(); !reflect.DeepEqual(have, want) {
		return fmt.Errorf("counts in memory are %+v, the tables say %+v", have, want)
	}
	if f.Waiting != tables.Waiting {
		return fmt.Errorf("%d jobs wait for an answer, the tables say %d", f.Waiting, tables.Waiting)
	}
	if f.inbox.lacks(tables.inbox) {
		return fmt.Errorf("unseen messages in memory are %v, the tables say %v", f.inbox, tables.inbox)
	}
	if !reflect.DeepEqual(f.holders, tables.holders) {
		return fmt.Errorf("workers hold %v, the tables say %v", f.holders, tables.holders)
	}
	return nil
}
