package fold

import (
	"encoding/binary"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

// step is one step of a change, with what its kind has. held is valid until the next step.
type step struct {
	kind   byte
	turn   rules.Turn
	held   *rules.Held // without its worker
	worker []byte
	lane   rules.LaneID
	at     lessor.Instant
	n      int64
	event  []byte
}

// steps takes a change apart and calls fn with each of its steps.
func steps(c Change, fn func(step)) error {
	r := reader{data: c.Data}
	var held rules.Held // one for all steps: a change may have thousands
	for {
		kind, more := r.kind()
		if !more {
			break
		}
		st := step{kind: kind}
		switch kind {
		case stepQueued:
			st.turn = r.turn()
		case stepRemoved:
			st.turn.Lane, st.turn.Seq = rules.LaneID(r.int()), r.int()
		case stepTaken, stepTakenBound:
			st.kind, st.held = stepTaken, &held
			held, st.at = r.taken(kind == stepTakenBound)
			st.worker = r.bytes(int(r.int()))
		case stepFreed, stepFreedBound:
			st.kind, st.held = stepFreed, &held
			held = r.freed(kind == stepFreedBound)
			st.worker = r.bytes(int(r.int()))
		case stepCancelled, stepTakenAway, stepMessaged:
			st.held = &held
			held = rules.Held{ID: lessor.LeaseID{UUID: r.uuid()}, Token: lessor.TokenID{UUID: r.uuid()}}
			held.Bound, held.Turn.Lane = r.int() == 1, rules.LaneID(r.int())
			st.at, st.worker = lessor.Instant(r.int()), r.bytes(int(r.int()))
		case stepDelayed:
			st.at = lessor.Instant(r.int())
		case stepWaiting:
			st.n = r.int()
		case stepMessage, stepSeen:
			st.turn.Job, st.n = lessor.JobID{UUID: r.uuid()}, r.int()
		case stepNoticed, stepDropped:
			st.lane = rules.LaneID(r.int())
		case stepEvent:
			st.event = r.bytes(int(r.int()))
		case stepSettings, stepFollowers:
		default:
			return fmt.Errorf("step %d: %w", kind, ErrStale)
		}
		if r.bad {
			break
		}
		fn(st)
	}
	if r.bad {
		return fmt.Errorf("stream %d, change %d cannot be read: %w", c.Stream, c.N, ErrStale)
	}
	return nil
}

// reader takes packed data apart. After the first value that it cannot read it returns zeros and sets bad.
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
	t.Fence, t.Steps, t.QueuedAt, t.RowRef = r.int(), int(r.int()), lessor.Instant(r.int()), r.int()
	return t
}

// taken returns as much of a new lease as the fold needs, and when it is to be checked.
func (r *reader) taken(bound bool) (h rules.Held, checkAt lessor.Instant) {
	h.ID, h.Bound = lessor.LeaseID{UUID: r.uuid()}, bound
	h.Turn.Lane, h.Turn.Seq = rules.LaneID(r.int()), r.int()
	h.Units, checkAt = int(r.int()), lessor.Instant(r.int())
	return h, checkAt
}

// freed returns as much of a lease that ended as the fold needs.
func (r *reader) freed(bound bool) rules.Held {
	h := rules.Held{Bound: bound}
	h.Turn.Lane, h.Units = rules.LaneID(r.int()), int(r.int())
	return h
}
