package memory

import (
	"fmt"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// A database can go back, and has other nodes then: see package postgres, whose signs and numbers these are.
const (
	morePlaces = 1024 * seqBlock
	moreLanes  = 10_000
	moreFence  = 1000
)

// origin is what this node knows of the database's history.
type origin struct {
	timeline    int
	lost        bool // a sign was seen and the store was not renewed since
	why         string
	place, lane int64 // the highest numbers that were seen
	fence       int64 // the highest of this node and, until the clock was last read, of others, but for moreFence
	clock       lessor.Instant
	clockRead   time.Duration // when; 0 = never
}

var errWentBack = fmt.Errorf("%w: its changes that this node knew are gone", scheduler.ErrWentBack)

// lose notes that the database went back; why is "" if that is not certain.
func (s *Store) lose(why string) {
	if s.origin.why == "" {
		s.origin.why = why
	}
	s.origin.lost = true
}

// WentBack implements scheduler.Store.
func (s *Store) WentBack() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := s.origin.why
	s.origin.why = ""
	return why
}

// differs reports whether the database is on another timeline than before. If so, the store is lost.
func (s *Store) differs() bool {
	if s.origin.timeline == s.db.timeline || s.origin.lost {
		return false
	}
	s.lose(fmt.Sprintf("the database went from timeline %d to %d", s.origin.timeline, s.db.timeline))
	return true
}

// checkOrigin looks for signs.
func (s *Store) checkOrigin() {
	if s.stream.id == 0 || s.origin.lost {
		return
	}
	switch {
	case s.origin.timeline != s.db.timeline || !s.lastIsThere():
		s.lose("changes that this node made are gone, or the database is another")
	case s.db.places < s.origin.place || s.db.laneIDs < s.origin.lane:
		s.lose("")
	}
	s.origin.place, s.origin.lane = max(s.origin.place, s.db.places), max(s.origin.lane, s.db.laneIDs)
}

// lastIsThere reports whether the last change of this node is in the database, or its stream if it has none.
func (s *Store) lastIsThere() bool {
	if s.stream.n == 0 {
		return s.db.streams.has(key{n: s.stream.id})
	}
	return s.db.state.changes.has(key{n: s.stream.id, m: s.stream.n})
}

// renew drops what is in memory, and makes the database give only numbers that it never gave before.
func (s *Store) renew() {
	d, o := s.db, &s.origin
	fence := o.fence
	if o.clockRead != 0 { // other nodes gave fences on the same clock
		fence = max(fence, int64(o.clock.Add(d.Mono(s.node)-o.clockRead)))
	}
	switch {
	case o.timeline != d.timeline:
		s.lose(fmt.Sprintf("the database went from timeline %d to %d", o.timeline, d.timeline))
	case s.stream.id != 0 && !s.lastIsThere():
		s.lose("the last change that this node made is gone")
	}
	if d.places < o.place+morePlaces {
		d.places = o.place + morePlaces + 64*seqBlock
	}
	if d.laneIDs < o.lane+moreLanes {
		d.laneIDs = o.lane + moreLanes + 1000
	}
	d.serving.Fence = max(d.serving.Fence, fence+moreFence)
	s.newStream()
	s.seqs, s.stream.next, s.stream.followed, s.served = seqs{}, nil, 0, 0
	o.lost = false
}
