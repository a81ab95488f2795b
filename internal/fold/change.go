package fold

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"lessor"
	"lessor/internal/rules"
)

// Change is what one commit of another node did to the fold. Data is a list of steps in the order in which they were
// made: a kind, then what the kind needs. A new kind goes to the end of the list below; a node that reads a kind it
// does not know rebuilds its fold, so that nodes of two releases can work side by side.
type Change struct {
	Stream int64
	N      int64 // counts the changes of a stream from 1, without gaps, up to Ended
	Data   []byte
}

// Ended is the number of a change that says: the stream has ended and was removed.
const Ended = math.MaxInt64

// Position is the last change seen of each stream.
type Position map[int64]int64

// Move moves the position behind a change.
func (p Position) Move(c Change) {
	if c.N == Ended {
		delete(p, c.Stream)
	} else {
		p[c.Stream] = c.N
	}
}

// The kinds of steps.
const (
	stepQueued     byte = iota + 1 // a turn entered the queue
	stepRemoved                    // a turn left the queue without a lease
	stepTaken                      // a turn left the queue for a lease
	stepFreed                      // a lease ended
	stepDelayed                    // a job waits for an instant
	stepSettings                   // operators changed something
	stepFollowers                  // a caller follows the records on the node that says so
	stepEvent                      // an entry of the records, while they are followed on another node
	stepUnlisted                   // more than is listed: a node that reads it rebuilds its fold
	stepTakenBound                 // stepTaken with a token that is bound to the tenant
	stepFreedBound                 // stepFreed of such a lease
	stepNoticed                    // a lane is on notice: its number must not be used any more
	stepDropped                    // a lane is not stored any more
	stepCancelled                  // the worker of a lease was asked to stop
	stepWaiting                    // jobs began, or ended, to wait for an answer
	stepTakenAway                  // a lease was taken from its worker
	stepMessage                    // a message was sent to a job
	stepSeen                       // the messages of a job up to a number are not kept any more
	stepMessaged                   // the job of a lease has a message
)

// Record begins to pack what the commit at work does. A sole node writes one step for all of them.
func (f *Fold) Record(sole bool) { f.packer = &packer{sole: sole} }

// Recorded ends the packing and returns what was packed; nil if nothing was.
func (f *Fold) Recorded() []byte {
	if f.packer == nil {
		return nil
	}
	data := f.packer.data
	f.packer = nil
	return data
}

// ChangeSettings makes other nodes read the settings again and try every waiting request.
func (f *Fold) ChangeSettings() {
	f.woken.All = true
	if f.packer != nil {
		f.packer.step(stepSettings)
	}
}

// AskForEvents makes other nodes publish their entries of the records to this node.
func (f *Fold) AskForEvents() {
	if f.packer != nil {
		f.packer.step(stepFollowers)
	}
}

// PublishEvent sends an entry of the records to other nodes.
func (f *Fold) PublishEvent(e *lessor.StreamEvent) error {
	if f.packer == nil {
		return nil
	}
	b, err := json.Marshal(e)
	if err == nil && f.packer.step(stepEvent) {
		f.packer.text(string(b))
	}
	return err
}

// packer packs the steps of one commit.
type packer struct {
	data []byte
	sole bool // there is no other node: one step stands for all, and a node that comes later rebuilds its fold
}

// step begins a step and reports whether to go on with it.
func (p *packer) step(kind byte) bool {
	switch {
	case !p.sole:
		p.data = append(p.data, kind)
	case len(p.data) == 0:
		p.data = append(p.data, stepUnlisted)
	}
	return !p.sole
}

func (p *packer) ints(vs ...int64) {
	for _, v := range vs {
		p.data = binary.AppendVarint(p.data, v)
	}
}

func (p *packer) text(s string) {
	p.ints(int64(len(s)))
	p.data = append(p.data, s...)
}

func (p *packer) queued(t rules.Turn) {
	if !p.step(stepQueued) {
		return
	}
	p.data = append(p.data, t.Job.UUID[:]...)
	p.ints(int64(t.Lane), t.Seq, int64(t.Attempt), int64(t.MaxAttempts), int64(t.Interruptions),
		t.Fence, int64(t.Steps), int64(t.QueuedAt), t.RowRef)
}

func (p *packer) removed(t rules.Turn) {
	if p.step(stepRemoved) {
		p.ints(int64(t.Lane), t.Seq)
	}
}

func (p *packer) taken(h *rules.Held, checkAt lessor.Instant) {
	kind := stepTaken
	if h.Bound {
		kind = stepTakenBound
	}
	if !p.step(kind) {
		return
	}
	p.data = append(p.data, h.ID.UUID[:]...)
	p.ints(int64(h.Turn.Lane), h.Turn.Seq, int64(h.Units), int64(checkAt))
	p.text(h.Worker)
}

func (p *packer) freed(h *rules.Held) {
	kind := stepFreed
	if h.Bound {
		kind = stepFreedBound
	}
	if !p.step(kind) {
		return
	}
	p.ints(int64(h.Turn.Lane), int64(h.Units))
	p.text(h.Worker)
}

func (p *packer) called(kind byte, h *rules.Held, at lessor.Instant) {
	if !p.step(kind) {
		return
	}
	p.data = append(p.data, h.ID.UUID[:]...)
	p.data = append(p.data, h.Token.UUID[:]...)
	bound := int64(0)
	if h.Bound {
		bound = 1
	}
	p.ints(bound, int64(h.Turn.Lane), int64(at))
	p.text(h.Worker)
}

func (p *packer) delayed(until lessor.Instant) {
	if p.step(stepDelayed) {
		p.ints(int64(until))
	}
}

func (p *packer) waiting(n int) {
	if p.step(stepWaiting) {
		p.ints(int64(n))
	}
}

func (p *packer) lane(kind byte, id rules.LaneID) {
	if p.step(kind) {
		p.ints(int64(id))
	}
}
