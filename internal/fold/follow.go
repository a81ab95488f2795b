package fold

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// ErrStale means that the fold cannot be brought up to date change by change: it must be rebuilt.
var ErrStale = errors.New("the fold lost track of other nodes")

// Followed is what the changes of other nodes say besides what they did to the fold.
type Followed struct {
	Settings  bool // operators or failures changed settings
	Followers bool // a caller follows the records on another node
	Events    []lessor.StreamEvent

	dropped []rules.LaneID
}

// Named returns the lanes that changes name and that the fold does not know.
func (f *Fold) Named(changes []Change) (unknown []rules.LaneID, err error) {
	for _, c := range changes {
		err := steps(c, func(st step) {
			lane := st.turn.Lane
			if st.held != nil {
				lane = st.held.Turn.Lane
			}
			if lane != 0 {
				unknown = f.Unknown(unknown, lane)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

// Follow applies what other nodes committed: all changes after Position that one read of all streams has shown. named
// are the lanes that Named returned; the caller has loaded them and called LearnLanes.
//
// Streams have no common order, so a change is applied when what it builds on is there: a turn must be queued before it
// is taken, and taken before it is queued again. One read shows every change together with all that led to it, so one
// of them can always be applied next; if none can, something is missing.
func (f *Fold) Follow(changes []Change, named []rules.LaneID, now lessor.Instant) (n Followed, err error) {
	for _, lane := range named {
		if !f.Index.Known(lane) {
			return n, fmt.Errorf("a change names lane %d, which is not stored: %w", lane, ErrStale)
		}
	}
	f.OthersAt = now
	f.Index.BeginBatch()
	defer f.Index.EndBatch()
	streams, err := f.inStreams(changes)
	for err == nil && len(streams) > 0 {
		moved := false
		for _, id := range slices.Sorted(maps.Keys(streams)) {
			rows := streams[id]
			for len(rows) > 0 && f.ready(rows[0]) {
				if err := f.apply(rows[0], &n); err != nil {
					return n, err
				}
				rows, moved = rows[1:], true
			}
			if streams[id] = rows; len(rows) == 0 {
				delete(streams, id)
			}
		}
		if !moved {
			err = fmt.Errorf("%d streams wait for each other: %w", len(streams), ErrStale)
		}
	}
	for _, id := range n.dropped { // after all that their jobs did
		f.dropped(id)
	}
	// One read shows an entry of a job together with all entries before it.
	slices.SortStableFunc(n.Events, func(a, b lessor.StreamEvent) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Seq, b.Seq))
	})
	return n, err
}

// inStreams sorts changes into their streams and moves the position behind them. A number that is missing is a gap.
func (f *Fold) inStreams(changes []Change) (map[int64][]Change, error) {
	streams := map[int64][]Change{}
	for _, c := range changes {
		if c.N != f.Position[c.Stream]+1 && c.N != Ended {
			return nil, fmt.Errorf("stream %d goes from %d to %d: %w", c.Stream, f.Position[c.Stream], c.N, ErrStale)
		}
		f.Position.Move(c)
		if c.N == Ended {
			continue
		}
		streams[c.Stream] = append(streams[c.Stream], c)
	}
	return streams, nil
}

// ready reports whether what a change builds on is in the fold.
func (f *Fold) ready(c Change) bool {
	ok, own := true, map[int64]bool{} // seqs that the change itself queued (true) or took away (false)
	queued := func(t rules.Turn) bool {
		if is, known := own[t.Seq]; known {
			return is
		}
		_, is := f.Index.Place(t.Lane, t.Seq)
		return is
	}
	_ = steps(c, func(st step) { // Named has read it already
		switch st.kind {
		case stepQueued:
			ok = ok && !queued(st.turn)
			own[st.turn.Seq] = true
		case stepRemoved:
			ok = ok && queued(st.turn)
			own[st.turn.Seq] = false
		case stepTaken:
			ok = ok && queued(st.held.Turn)
			own[st.held.Turn.Seq] = false
		}
	})
	return ok
}

// apply does to the fold what another node's commit did to the tables.
func (f *Fold) apply(c Change, n *Followed) error {
	return steps(c, func(st step) {
		if st.held != nil {
			st.held.Worker = string(st.worker)
			if st.held.Bound {
				st.held.Tenant = f.Index.Lane(st.held.Turn.Lane).Tenant
			}
		}
		switch st.kind {
		case stepQueued:
			f.enqueue(st.turn)
		case stepRemoved:
			f.remove(st.turn)
		case stepTaken:
			f.Index.TakeSeq(st.held.Turn.Lane, st.held.Turn.Seq)
			f.countHolder(st.held, 1)
			f.woken.Turned = true
			f.wakeWorker(st.held.Holder()) // a repeat of the request that was granted may wait here
			f.planFollowed(st.held.ID, st.at)
		case stepFreed:
			f.free(st.held)
		case stepCancelled:
			f.call(st.held, st.at, Cancelled)
		case stepTakenAway:
			f.call(st.held, st.at, TakenAway)
		case stepMessaged:
			f.call(st.held, st.at, Messaged)
		case stepDelayed:
			f.delay(st.at)
		case stepWaiting:
			f.Waiting += int(st.n)
		case stepMessage:
			f.LoadMessages(st.turn.Job, st.n)
		case stepSeen:
			f.seen(st.turn.Job, st.n)
		case stepNoticed:
			f.noticed(st.lane)
		case stepDropped:
			n.dropped = append(n.dropped, st.lane)
		case stepSettings:
			n.Settings, f.woken.All = true, true
		case stepFollowers:
			n.Followers = true
		case stepEvent:
			var e lessor.StreamEvent
			if json.Unmarshal(st.event, &e) == nil { // another release may write it otherwise
				n.Events = append(n.Events, e)
			}
		}
	})
}
