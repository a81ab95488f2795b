package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// errStale means that the fold cannot be brought up to date step by step: it must be rebuilt, and the batch repeated.
var errStale = errors.New("the fold lost track of other nodes")

// follow brings the fold up to date with what other nodes committed, as far as v sees it.
//
// Streams have no common order, so a change is applied when what it builds on is there: a turn must be queued before it is
// taken, and taken before it is queued again. One read of all streams shows every change together with all that led to it,
// so there is always one that can go next; if not, something is missing and the fold is rebuilt.
func (l *loop) follow(ctx context.Context, v View) error {
	if !l.store.Shared() {
		return nil
	}
	l.fold.followedAt = time.Now()
	changes, err := v.Changes(ctx, l.fold.position)
	if err != nil || len(changes) == 0 {
		return err
	}
	l.fold.metAt = v.Now()
	if err := l.fold.meet(ctx, v, changes); err != nil {
		return err
	}
	streams, err := l.fold.line(changes)
	if err != nil {
		return err
	}
	var told []lessor.StreamEvent
	var gone []rules.LaneID
	for len(streams) > 0 {
		moved := false
		for id, rows := range streams {
			n := 0
			for n < len(rows) && l.fold.ready(rows[n]) {
				news, err := l.fold.apply(rows[n])
				if err != nil {
					return err
				}
				if news.settings {
					l.reload = true
				}
				if news.followed {
					l.followedUntil = v.Now().Add(followedFor)
				}
				told, gone = append(told, news.told...), append(gone, news.gone...)
				n++
			}
			moved = moved || n > 0
			if streams[id] = rows[n:]; len(streams[id]) == 0 {
				delete(streams, id)
			}
		}
		if !moved {
			return fmt.Errorf("%d streams wait for each other: %w", len(streams), errStale)
		}
	}
	for _, id := range gone { // after all that their jobs did
		l.fold.gone(id)
	}
	l.stream.publish(inOrder(told))
	if l.reload {
		l.reload = false
		err = l.loadSettings(ctx, v, l.fold)
	}
	return err
}

// inOrder sorts entries of several nodes: one read shows an entry of a job together with all that came before it.
func inOrder(told []lessor.StreamEvent) []lessor.StreamEvent {
	slices.SortStableFunc(told, func(a, b lessor.StreamEvent) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Seq, b.Seq)) })
	return told
}

// meet registers the lanes that changes name and that are not known here.
func (f *fold) meet(ctx context.Context, v View, changes []Change) error {
	var unknown []rules.LaneID
	for _, c := range changes {
		err := steps(c, func(st step) {
			lane := st.turn.Lane
			if st.held != nil {
				lane = st.held.Turn.Lane
			}
			if lane != 0 {
				unknown = f.unknown(unknown, lane)
			}
		})
		if err != nil {
			return err
		}
	}
	if err := f.learn(ctx, v, unknown); err != nil {
		return err
	}
	for _, lane := range unknown {
		if !f.index.Known(lane) {
			return fmt.Errorf("a change names lane %d, which is not stored: %w", lane, errStale)
		}
	}
	return nil
}

// line sorts changes into their streams and moves the position behind them. A number that is missing is a gap.
func (f *fold) line(changes []Change) (map[int64][]Change, error) {
	streams := map[int64][]Change{}
	for _, c := range changes {
		if c.N != f.position[c.Stream]+1 {
			return nil, fmt.Errorf("stream %d goes from %d to %d: %w", c.Stream, f.position[c.Stream], c.N, errStale)
		}
		f.position[c.Stream] = c.N
		streams[c.Stream] = append(streams[c.Stream], c)
	}
	return streams, nil
}

// ready reports whether what a change builds on is in the fold.
func (f *fold) ready(c Change) bool {
	ok, own := true, map[int64]bool{} // seqs that the change itself queued (true) or took away (false)
	queued := func(lane rules.LaneID, seq int64) bool {
		if is, known := own[seq]; known {
			return is
		}
		_, is := f.index.Place(lane, seq)
		return is
	}
	_ = steps(c, func(st step) { // an unreadable one is met by apply
		switch st.kind {
		case stepQueued:
			ok = ok && !queued(st.turn.Lane, st.turn.Seq)
			own[st.turn.Seq] = true
		case stepRemoved:
			ok = ok && queued(st.turn.Lane, st.turn.Seq)
			own[st.turn.Seq] = false
		case stepTaken:
			ok = ok && queued(st.held.Turn.Lane, st.held.Turn.Seq)
			own[st.held.Turn.Seq] = false
		}
	})
	return ok
}

// news is what a change of another node says besides what it did to the fold.
type news struct {
	settings bool // were changed
	followed bool // are the records, on that node
	told     []lessor.StreamEvent
	gone     []rules.LaneID
}

// apply does to the fold what another node's commit did to the tables.
func (f *fold) apply(c Change) (n news, err error) {
	err = steps(c, func(st step) {
		if st.held != nil && st.held.Bound {
			st.held.Tenant = f.index.Lane(st.held.Turn.Lane).Tenant
		}
		switch st.kind {
		case stepQueued:
			f.enqueues(st.turn)
		case stepRemoved:
			f.index.Remove(st.turn.Lane, st.turn.Seq)
			f.freed = true
		case stepTaken:
			f.index.TakeSeq(st.held.Turn.Lane, st.held.Turn.Seq)
			f.holds(st.held)
			f.touch(st.held) // a repeat of the request that was granted may wait here
			f.lookOf(st.held.ID, st.at)
		case stepFreed:
			f.frees(st.held)
		case stepWaits:
			f.waitsUntil(st.at)
		case stepNoticed:
			f.noticed(st.lane)
		case stepGone:
			n.gone = append(n.gone, st.lane)
		case stepSettings:
			n.settings, f.woke = true, true
		case stepFollowed:
			n.followed = true
		case stepTold:
			var e lessor.StreamEvent
			if json.Unmarshal(st.told, &e) == nil { // a release that tells it otherwise
				n.told = append(n.told, e)
			}
		}
	})
	return n, err
}

// step is one step of a change, with what its kind has.
type step struct {
	kind byte
	turn rules.Turn
	held *rules.Held
	lane rules.LaneID
	at   lessor.Instant
	told []byte
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
		case stepTakenFor:
			st.kind = stepTaken
			st.held, st.at = r.held(true)
			st.held.Bound = true
		case stepFreedFor:
			st.kind = stepFreed
			st.held, st.at = r.held(false)
			st.held.Bound = true
		case stepWaits:
			st.at = lessor.Instant(r.int())
		case stepNoticed, stepGone:
			st.lane = rules.LaneID(r.int())
		case stepTold:
			st.told = r.bytes(int(r.int()))
		case stepSettings, stepFollowed:
		default:
			return fmt.Errorf("step %d: %w", kind, errStale)
		}
		if r.bad {
			break
		}
		fn(st)
	}
	if r.bad {
		return fmt.Errorf("stream %d, change %d cannot be read: %w", c.Stream, c.N, errStale)
	}
	return nil
}
