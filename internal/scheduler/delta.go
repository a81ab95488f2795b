package scheduler

import (
	"encoding/binary"
	"encoding/json"

	"lessor"
	"lessor/internal/rules"
)

// delta is what one commit did to the fold, packed, for the other nodes of the store. It is a list of steps in the order
// they were made: a kind, then what the kind needs. A new kind goes to the end of the list; a node that meets a kind it
// does not know rebuilds its fold, so that nodes of two releases can work side by side.
type delta struct {
	data []byte
	// brief says that there is no other node: one step stands for all, and who comes later and meets it rebuilds its fold.
	brief bool
}

// The kinds of steps.
const (
	stepQueued   byte = iota + 1 // a turn came into the queue
	stepRemoved                  // a turn left the queue without a lease
	stepTaken                    // a turn left the queue for a lease
	stepFreed                    // a lease ended
	stepWaits                    // a job waits for an instant
	stepSettings                 // operators changed something
	stepFollowed                 // somebody follows the records on the node that says so
	stepTold                     // an entry of the records, while somebody follows them on another node
	stepUntold                   // more than is told
	stepTakenFor                 // stepTaken with a token that is bound to the tenant
	stepFreedFor                 // stepFreed of such a lease
	stepNoticed                  // a lane is on notice: its number must not be used any more
	stepGone                     // a lane is not stored any more
)

// step begins a step and reports whether to go on with it.
func (d *delta) step(kind byte) bool {
	switch {
	case !d.brief:
		d.data = append(d.data, kind)
	case len(d.data) == 0:
		d.data = append(d.data, stepUntold)
	}
	return !d.brief
}

func (d *delta) ints(vs ...int64) {
	for _, v := range vs {
		d.data = binary.AppendVarint(d.data, v)
	}
}

func (d *delta) text(s string) {
	d.ints(int64(len(s)))
	d.data = append(d.data, s...)
}

func (d *delta) queued(t rules.Turn) {
	if !d.step(stepQueued) {
		return
	}
	d.data = append(d.data, t.Job.UUID[:]...)
	d.ints(int64(t.Lane), t.Seq, int64(t.Attempt), int64(t.MaxAttempts), int64(t.Interruptions), t.Fence, int64(t.Steps), int64(t.QueuedAt), t.Cohort)
}

func (d *delta) removed(lane rules.LaneID, seq int64) {
	if d.step(stepRemoved) {
		d.ints(int64(lane), seq)
	}
}

func (d *delta) taken(h *rules.Held, look lessor.Instant) {
	kind := stepTaken
	if h.Bound {
		kind = stepTakenFor
	}
	if !d.step(kind) {
		return
	}
	d.data = append(d.data, h.ID.UUID[:]...)
	d.ints(int64(h.Turn.Lane), h.Turn.Seq, int64(h.Units), int64(look))
	d.text(h.Worker)
}

func (d *delta) freed(h *rules.Held) {
	kind := stepFreed
	if h.Bound {
		kind = stepFreedFor
	}
	if !d.step(kind) {
		return
	}
	d.ints(int64(h.Turn.Lane), int64(h.Units))
	d.text(h.Worker)
}

func (d *delta) waits(until lessor.Instant) {
	if d.step(stepWaits) {
		d.ints(int64(until))
	}
}

func (d *delta) lane(kind byte, id rules.LaneID) {
	if d.step(kind) {
		d.ints(int64(id))
	}
}

func (d *delta) settings() { d.step(stepSettings) }

func (d *delta) followed() { d.step(stepFollowed) }

func (d *delta) told(e *lessor.StreamEvent) error {
	b, err := json.Marshal(e)
	if err == nil && d.step(stepTold) {
		d.text(string(b))
	}
	return err
}

// reader takes a delta apart. After the first thing it cannot read it returns zeros and remembers that.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) kind() (byte, bool) {
	if len(r.data) == 0 || r.bad {
		return 0, false
	}
	k := r.data[0]
	r.data = r.data[1:]
	return k, true
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.bad, r.data = true, nil
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) uuid() (u lessor.UUID) {
	copy(u[:], r.bytes(len(u)))
	return u
}

func (r *reader) turn() rules.Turn {
	t := rules.Turn{Job: lessor.JobID{UUID: r.uuid()}}
	t.Lane, t.Seq = rules.LaneID(r.int()), r.int()
	t.Attempt, t.MaxAttempts, t.Interruptions = int(r.int()), int(r.int()), int(r.int())
	t.Fence, t.Steps, t.QueuedAt, t.Cohort = r.int(), int(r.int()), lessor.Instant(r.int()), r.int()
	return t
}

// held returns as much of a lease as the fold needs.
func (r *reader) held(named bool) (h *rules.Held, look lessor.Instant) {
	h = &rules.Held{}
	if named {
		h.ID = lessor.LeaseID{UUID: r.uuid()}
	}
	h.Turn.Lane = rules.LaneID(r.int())
	if named {
		h.Turn.Seq = r.int()
	}
	h.Units = int(r.int())
	if named {
		look = lessor.Instant(r.int())
	}
	h.Worker = string(r.bytes(int(r.int())))
	return h, look
}
