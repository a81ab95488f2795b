package scheduler

import (
	"context"
	"errors"
	"fmt"

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
func (s *Scheduler) follow(ctx context.Context, v View) error {
	if !s.store.Shared() {
		return nil
	}
	changes, err := v.Changes(ctx, s.fold.position)
	if err != nil || len(changes) == 0 {
		return err
	}
	s.fold.metAt = v.Now()
	if err := s.fold.meet(ctx, v, changes); err != nil {
		return err
	}
	streams, err := s.fold.line(changes)
	if err != nil {
		return err
	}
	for len(streams) > 0 {
		moved := false
		for id, rows := range streams {
			n := 0
			for n < len(rows) && s.fold.ready(rows[n]) {
				settings, err := s.fold.apply(rows[n])
				if err != nil {
					return err
				}
				if settings {
					s.reload = true
				}
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
	if s.reload {
		s.reload = false
		err = s.loadSettings(ctx, v, s.fold)
	}
	return err
}

// meet registers the lanes that changes name and that are not known here.
func (f *fold) meet(ctx context.Context, v View, changes []Change) error {
	var unknown []rules.LaneID
	for _, c := range changes {
		err := steps(c, func(_ byte, t rules.Turn, h *rules.Held, _ lessor.Instant) {
			lane := t.Lane
			if h != nil {
				lane = h.Turn.Lane
			}
			if lane != 0 && !f.index.Known(lane) {
				unknown = append(unknown, lane)
			}
		})
		if err != nil {
			return err
		}
	}
	lanes, err := v.LanesByID(ctx, unknown)
	if err != nil {
		return err
	}
	for id, l := range lanes {
		f.lanes[l] = id
		f.index.Add(id, l)
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
	_ = steps(c, func(kind byte, t rules.Turn, h *rules.Held, _ lessor.Instant) { // an unreadable one is met by apply
		switch kind {
		case stepQueued:
			ok = ok && !queued(t.Lane, t.Seq)
			own[t.Seq] = true
		case stepRemoved:
			ok = ok && queued(t.Lane, t.Seq)
			own[t.Seq] = false
		case stepTaken:
			ok = ok && queued(h.Turn.Lane, h.Turn.Seq)
			own[h.Turn.Seq] = false
		}
	})
	return ok
}

// apply does to the fold what another node's commit did to the tables. It reports whether settings were changed.
func (f *fold) apply(c Change) (settings bool, err error) {
	err = steps(c, func(kind byte, t rules.Turn, h *rules.Held, at lessor.Instant) {
		switch kind {
		case stepQueued:
			f.index.Enqueue(t)
			f.woke = true
		case stepRemoved:
			f.index.Remove(t.Lane, t.Seq)
		case stepTaken:
			f.index.TakeSeq(h.Turn.Lane, h.Turn.Seq)
			f.holds(h)
			f.look(h.ID, at)
		case stepFreed:
			f.frees(h)
		case stepWaits:
			f.waitsUntil(at)
		case stepSettings:
			settings, f.woke = true, true
		}
	})
	return settings, err
}

// steps takes a change apart and calls fn with each of its steps.
func steps(c Change, fn func(kind byte, t rules.Turn, h *rules.Held, at lessor.Instant)) error {
	r := reader{data: c.Data}
	for {
		kind, more := r.kind()
		if !more {
			break
		}
		var t rules.Turn
		var h *rules.Held
		var at lessor.Instant
		switch kind {
		case stepQueued:
			t = r.turn()
		case stepRemoved:
			t.Lane, t.Seq = rules.LaneID(r.int()), r.int()
		case stepTaken, stepFreed:
			var held rules.Held
			held, at = r.held(kind == stepTaken)
			h = &held
		case stepWaits:
			at = lessor.Instant(r.int())
		case stepSettings:
		default:
			return fmt.Errorf("step %d: %w", kind, errStale)
		}
		if r.bad {
			break
		}
		fn(kind, t, h, at)
	}
	if r.bad {
		return fmt.Errorf("stream %d, change %d cannot be read: %w", c.Stream, c.N, errStale)
	}
	return nil
}
