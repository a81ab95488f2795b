package scheduler

import (
	"context"
	"math"
	"sync"
	"time"

	"lessor"
)

// The stream of all records keeps this many entries for followers that reconnect, and lets a slow follower be this many
// entries behind before it skips some.
const (
	streamMemory = 4096
	streamBuffer = 1024
)

// streamLinger is how long entries are remembered after the last follower left.
const streamLinger = time.Minute

// maxFollowers bounds the streams open at once.
const maxFollowers = 1000

// stream delivers committed entries to followers. It never delays a commit: a follower that cannot keep up gets a gap.
type stream struct {
	mu        sync.Mutex
	last      uint64
	memory    []Streamed
	followers map[*follower]struct{}
	leftAt    time.Time
	closed    bool
}

type follower struct {
	tenant *lessor.TenantID
	c      chan Streamed
	gap    bool
}

// active reports whether entries must be made: there is a follower, or one left a short time ago.
func (s *stream) active(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
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

func (f *follower) offer(e Streamed) {
	if f.tenant != nil && *f.tenant != e.Event.TenantID {
		return
	}
	e.Gap = f.gap
	select {
	case f.c <- e:
		f.gap = false
	default:
		f.gap = true
	}
}

// markGap records that entries of other nodes may have been skipped.
func (s *stream) markGap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++ // an id that is never sent
	s.memory = nil
	for f := range s.followers {
		f.gap = true
	}
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for f := range s.followers {
		delete(s.followers, f)
		close(f.c)
	}
}

// AfterUnknown is the position of a follower that reconnects and does not know its last entry: it may have missed any.
const AfterUnknown = math.MaxUint64

// Subscribe delivers entries committed from now on, preceded by those after the id as far as they are remembered, until
// ctx is done; the channel is then closed. An entry with Gap set follows after others were left out; if they were left
// out before the first, it comes at once and has no event. Other nodes publish theirs once they know of the first
// follower here.
func (s *Scheduler) Subscribe(ctx context.Context, c Caller, after uint64) (<-chan Streamed, error) {
	f, first, err := s.stream.join(ctx, c, after)
	if err != nil {
		return nil, err
	}
	if first {
		s.askForRecords(ctx)
	}
	return f.c, nil
}

// join adds a follower, and reports whether it is the only one.
func (s *stream) join(ctx context.Context, c Caller, after uint64) (f *follower, first bool, err error) {
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
	f = &follower{tenant: c.Tenant}
	s.catchUp(f, after)
	if s.followers == nil {
		s.followers = map[*follower]struct{}{}
	}
	s.followers[f] = struct{}{}
	context.AfterFunc(ctx, func() { s.leave(f) })
	return f, len(s.followers) == 1, nil
}

// catchUp gives a new follower its channel, with what it missed in it: the buffer is for what comes.
func (s *stream) catchUp(f *follower, after uint64) {
	if after == 0 || after == s.last {
		f.c = make(chan Streamed, streamBuffer)
		return
	}
	missed := s.memory
	lost := after > s.last || len(s.memory) == 0 || s.memory[0].ID > after+1
	if !lost {
		missed = s.memory[after+1-s.memory[0].ID:]
	}
	f.c = make(chan Streamed, 1+len(missed)+streamBuffer)
	if lost {
		f.c <- Streamed{Gap: true}
	}
	for _, e := range missed {
		f.offer(e)
	}
}

func (s *stream) leave(f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.followers[f]; !ok {
		return
	}
	delete(s.followers, f)
	close(f.c)
	s.leftAt = time.Now()
}
