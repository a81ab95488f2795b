package memory

import (
	"fmt"
	"slices"
	"time"

	"lessor/internal/scheduler"
)

// flight is a commit on its way. Its transaction keeps its locks until the fate of the commit is decided.
type flight struct {
	tx      *tx
	stream  int64
	n       int64 // of its change; 0 = it wrote nothing
	decided bool
	err     error
}

const (
	// maxFlights is how many commits may be on their way: one that the database works on, and one behind it.
	maxFlights = 2
	// guardFor is how long ago the node may have served if it is to decide without reading.
	guardFor = 500 * time.Millisecond
)

// errOthers: a node that believed itself alone is not.
var errOthers = fmt.Errorf("%w: another node came between", scheduler.ErrAgain)

// commit sends the commit of t.
func (t *tx) commit() (*flight, error) {
	if t.guard && t.gated {
		t.guard, t.late = false, true // from here on the gate is waited for
		err := t.do("gate", t.takeGate)
		t.guard = true
		if err != nil {
			return nil, t.suspect(err)
		}
	}
	err := t.do("commit", func() error {
		s := t.store
		t.flight = &flight{tx: t, stream: s.stream.id}
		if len(t.writes) > 0 || t.published != nil || t.saved != nil {
			t.flight.n = s.lastNumber() + 1
		}
		s.flights = append(s.flights, t.flight)
		s.writing = nil
		return nil
	})
	return t.flight, err
}

// lastNumber is the number of the last change that was sent.
func (s *Store) lastNumber() int64 {
	for _, f := range slices.Backward(s.flights) {
		if f.n > 0 && f.stream == s.stream.id {
			return f.n
		}
	}
	return s.stream.n
}

// wait returns what became of a commit.
func (s *Store) wait(f *flight) error {
	s.mu.Lock()
	err := s.decideThrough(f)
	s.mu.Unlock()
	s.reach(s.node, "answer")
	return err
}

// endAll decides the fate of all commits on their way, and forgets them. It returns the error of the first that failed.
// The writer that has the turn calls it.
func (s *Store) endAll() error {
	var first error
	for len(s.flights) > 0 {
		if err := s.endOldest(); first == nil {
			first = err
		}
	}
	return first
}

// endOldest is endAll for the oldest commit.
func (s *Store) endOldest() error {
	f := s.flights[0]
	err := s.decideThrough(f)
	s.flights = s.flights[1:]
	return err
}

// decideThrough decides the fate of a commit and of those before it, unless that is done, and returns the error of the
// commit. The commit keeps its result for a caller that waits later, and for the transaction behind it.
func (s *Store) decideThrough(last *flight) error {
	for _, f := range s.flights {
		if last.decided {
			break
		}
		if !f.decided {
			f.decide()
			f.decided = true
			s.decided++
			f.tx.end()
			f.tx.writes = nil
		}
	}
	return last.err
}

// decide asks the Stepper for the fate of a commit, and carries it out.
func (f *flight) decide() {
	t := f.tx
	s, d := t.store, t.db
	if f.err = f.check(); f.err != nil {
		return
	}
	fate := Durable
	if d.Stepper != nil {
		fate = d.Stepper.Fate(s.node)
	}
	switch fate {
	case Durable, DurableUnanswered, DurableUnknown:
		f.apply()
	case Refused:
		f.err = fmt.Errorf("commit: %w: it was refused", scheduler.ErrUnreachable)
	case Full:
		f.err = fmt.Errorf("commit: %w", scheduler.ErrFull)
	case LostUnanswered, LostUnknown:
		f.err = fmt.Errorf("commit: %w", scheduler.ErrDisconnected)
	}
	f.resolve(fate)
}

// check makes the checks of the last statements of a transaction.
func (f *flight) check() error {
	t := f.tx
	s, d := t.store, t.db
	before, there := d.state.changes.get(key{n: f.stream, m: f.n - 1})
	own, known := d.streams.get(key{n: f.stream})
	known = known && own.seenAt > t.now.Add(-deadAfter/2) // else it may be removed before the commit
	switch {
	case f.n > 0 && (!known || f.n > 1 && !there || s.origin.timeline != d.timeline):
		s.lose("") // the renewal of the store finds out why
		return fmt.Errorf("%w: the stream of this node, or its last change, is gone", scheduler.ErrAgain)
	case t.guard && (f.n > 1 && before.void || s.othersWrote(f.stream)):
		return errOthers
	case t.saved != nil && (t.base.Since != d.serving.Since || t.base.BrakeUntil != d.serving.BrakeUntil ||
		t.base.LapsedAt != d.serving.LapsedAt):
		return fmt.Errorf("save serving: %w", scheduler.ErrAgain)
	}
	return nil
}

// othersWrote reports whether other nodes have published what this one has not followed.
func (s *Store) othersWrote(own int64) bool {
	for _, id := range others(s.db.streams, own, *s.stream.next) {
		for c := range s.db.state.changes.from(key{n: id, m: (*s.stream.next)[id] + 1}) {
			if c.n == id {
				return true
			}
			break
		}
	}
	return false
}

// apply makes the changes of a transaction visible.
func (f *flight) apply() {
	t, d := f.tx, f.tx.db
	if f.n == 0 {
		return
	}
	state := t.state
	if t.seen != d.version || t.decided != t.store.decided {
		state = d.state
		for _, w := range t.writes {
			w(&state)
		}
	}
	d.state = state
	d.version++
	d.state.changes.put(key{n: f.stream, m: f.n}, change{data: t.published, at: t.now})
	if t.saved != nil {
		beat, fence := d.serving.LastBeat, d.serving.Fence
		d.serving = *t.saved
		d.serving.LastBeat, d.serving.Fence = beat, fence
	}
	if d.Committed != nil {
		var v view
		d.outside().snapshot(&v)
		d.Committed(&v)
	}
}

// resolve finds out what became of a commit whose answer is lost, as store/postgres/resolve.go does: it puts a void
// change under the number of the commit, unless there is one.
func (f *flight) resolve(fate Fate) {
	s, d := f.tx.store, f.tx.db
	switch {
	case f.n == 0 || f.stream != s.stream.id:
		if fate == DurableUnanswered || fate == DurableUnknown {
			f.err = fmt.Errorf("commit: %w: the answer was lost", scheduler.ErrUnreachable)
		}
	case fate == DurableUnknown || fate == LostUnknown:
		f.err = fmt.Errorf("commit: %w", scheduler.ErrUnknownOutcome)
		s.stream.forget()
	case fate == LostUnanswered:
		d.state.changes.put(key{n: f.stream, m: f.n}, change{void: true, at: d.Clock()})
		d.version++
		s.stream.n = f.n
	case fate == Durable || fate == DurableUnanswered:
		s.stream.n = f.n
	}
}
