package fold

import (
	"encoding/binary"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

// step is one step of a change, with what its kind has.
type step struct {
	kind  byte
	turn  rules.Turn
	held  *rules.Held
	lane  rules.LaneID
	at    lessor.Instant
	n     int64
	event []byte
}

// steps takes a change apart and calls fn with each of its steps.
func steps(c Change, fn func(step)) error {
	r := reader{data: c.Data}
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
		case stepTaken, stepFreed:
			st.held, st.at = r.held(kind == stepTaken)
		case stepTakenBound:
			st.kind = stepTaken
			st.held, st.at = r.held(true)
			st.held.Bound = true
		case stepFreedBound:
			st.kind = stepFreed
			st.held, st.at = r.held(false)
			st.held.Bound = true
		case stepCancelled, stepTakenAway, stepMessaged:
			st.held = &rules.Held{ID: lessor.LeaseID{UUID: r.uuid()}, Token: lessor.TokenID{UUID: r.uuid()}}
			st.held.Bound, st.held.Turn.Lane = r.int() == 1, rules.LaneID(r.int())
			st.at, st.held.Worker = lessor.Instant(r.int()), string(r.bytes(int(r.int())))
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
	t.Fence, t.Steps, t.QueuedAt, t.Kept = r.int(), int(r.int()), lessor.Instant(r.int()), r.int()
	return t
}

// held returns as much of a lease as the fold needs, and when a new one is to be checked.
func (r *reader) held(isNew bool) (h *rules.Held, checkAt lessor.Instant) {
	h = &rules.Held{}
	if isNew {
		h.ID = lessor.LeaseID{UUID: r.uuid()}
	}
	h.Turn.Lane = rules.LaneID(r.int())
	if isNew {
		h.Turn.Seq = r.int()
	}
	h.Units = int(r.int())
	if isNew {
		checkAt = lessor.Instant(r.int())
	}
	h.Worker = string(r.bytes(int(r.int())))
	return h, checkAt
}
