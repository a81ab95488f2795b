package scheduler

import (
	"context"
	"math"
	"sync"
	"time"

	"lessor"
)

// streamMemory is how many entries the stream remembers, for all followers together: those that are slow, and those
// that come back.
const streamMemory = 16384

// streamLinger is how long entries are made after the last follower left.
const streamLinger = time.Minute

// maxFollowers bounds the streams open at once.
const maxFollowers = 1000

// stream delivers committed entries to followers. It never delays a commit: a follower that cannot keep up gets a gap.
type stream struct {
	mu        sync.Mutex
	last      uint64
	memory    []Streamed // the newest, up to and with last
	followers map[*Follower]struct{}
	leftAt    time.Time
	asked     bool      // the other nodes publish their entries here
	askedAt   time.Time // when they were last asked; zero = not since the first follower came
	missed    bool      // they could not be asked, since they were last asked
	closed    bool
}

// Follower is a caller's place in the stream of all records.
type Follower struct {
	stream  *stream
	tenant  *lessor.TenantID
	arrived chan struct{}
	next    uint64 // the first entry that was not taken
	gap     bool   // entries before it were left out
}

// Arrived receives a value after entries have come, and is closed when the stream ends.
func (f *Follower) Arrived() <-chan struct{} { return f.arrived }

// Take returns up to most entries that have come since the last call.
func (f *Follower) Take(most int) (entries []Streamed) {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	if first := f.stream.first(); f.next < first {
		f.next, f.gap = first, true
	}
	if f.gap {
		entries, f.gap = append(entries, Streamed{Gap: true}), false
	}
	for _, e := range f.stream.memory[f.next-f.stream.first():] {
		if len(entries) >= most {
			break
		}
		if f.next++; f.sees(e) {
			entries = append(entries, e)
		}
	}
	return entries
}

func (f *Follower) sees(e Streamed) bool { return f.tenant == nil || *f.tenant == e.Event.TenantID }

// offer wakes a follower that sees the entry. Any other one passes over it, so that the entries of other tenants make
// no gap.
func (f *Follower) offer(e Streamed) {
	switch {
	case f.sees(e):
		f.wake()
	case f.next == e.ID:
		f.next++
	}
}

func (f *Follower) wake() {
	select {
	case f.arrived <- struct{}{}:
	default:
	}
}

// first returns the id of the oldest entry that is remembered, or of the next one.
func (s *stream) first() uint64 { return s.last + 1 - uint64(len(s.memory)) }

// active reports whether entries must be made: there is a follower, or one left a short time ago.
func (s *stream) active(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isActive(now)
}

func (s *stream) isActive(now time.Time) bool {
	return len(s.followers) > 0 || !s.leftAt.IsZero() && now.Sub(s.leftAt) < streamLinger
}

// publish delivers the entries of one commit.
func (s *stream) publish(events []lessor.StreamEvent) {
	if len(events) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.last++
		entry := Streamed{ID: s.last, Event: e}
		if len(s.memory) == streamMemory {
			s.memory = append(s.memory[:0], s.memory[streamMemory/2:]...)
		}
		s.memory = append(s.memory, entry)
		for f := range s.followers {
			f.offer(entry)
		}
	}
}

// markGap records that entries may have been skipped.
func (s *stream) markGap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
}

// noteAsked records whether the other nodes could be asked for their entries, between began and now. Those that they
// published nowhere in the meantime are a gap.
func (s *stream) noteAsked(began, now time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked = err == nil; s.asked {
		late := !s.askedAt.IsZero() && now.Sub(s.askedAt) > askedFor
		if s.missed || late {
			s.forget()
		}
		s.askedAt = began
	}
	s.missed = err != nil
}

// forget leaves a gap behind all entries so far.
func (s *stream) forget() {
	s.last++ // an id that is never sent
	s.memory = nil
	for f := range s.followers {
		f.wake()
	}
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for f := range s.followers {
		delete(s.followers, f)
		close(f.arrived)
	}
}

// AfterUnknown is the position of a follower that reconnects and does not know its last entry: it may have missed any.
const AfterUnknown = math.MaxUint64

// Subscribe delivers entries committed from now on, preceded by those after the id as far as they are remembered, until
// ctx is done. Other nodes publish theirs once they know of a follower here.
func (s *Scheduler) Subscribe(ctx context.Context, c Caller, after uint64) (*Follower, error) {
	f, asked, err := s.stream.join(ctx, c, after, s.now())
	if err != nil {
		return nil, err
	}
	if !asked {
		s.askForRecords(ctx)
	}
	return f, nil
}

// join adds a follower, and reports whether the other nodes publish their entries here.
func (s *stream) join(
	ctx context.Context, c Caller, after uint64, now time.Time,
) (f *Follower, asked bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, errStopping
	}
	if len(s.followers) >= maxFollowers {
		return nil, false, &lessor.Error{
			Code: lessor.CodeRateLimited, Detail: "too many event streams are open", RetryAfter: time.Second,
		}
	}
	if !s.isActive(now) { // no entries were made in the meantime
		s.forget()
		s.asked, s.askedAt, s.missed = false, time.Time{}, false
	}
	f = &Follower{stream: s, tenant: c.Tenant, arrived: make(chan struct{}, 1), next: after + 1}
	switch {
	case after == 0:
		f.next = s.last + 1
	case after > s.last:
		f.next, f.gap = s.first(), true
	}
	f.wake()
	if s.followers == nil {
		s.followers = map[*Follower]struct{}{}
	}
	s.followers[f] = struct{}{}
	context.AfterFunc(ctx, func() { s.leave(f) })
	return f, s.asked, nil
}

func (s *stream) leave(f *Follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.followers[f]; !ok {
		return
	}
	delete(s.followers, f)
	close(f.arrived)
	s.leftAt = time.Now()
}
