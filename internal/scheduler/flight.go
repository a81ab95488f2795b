package scheduler

import (
	"context"
	"errors"
	"time"
)

// flight is a commit on its way, over a store that can begin the next transaction meanwhile (Sender). The fold is ahead of the tables then: it
// holds what the commit will make of them. Its calls are answered when it has landed; if it fails, the pass that was begun on top
// of it is given up, the fold is rebuilt, and both are repeated as far as they can be.
type flight struct {
	p     *pass
	w     *work
	start time.Time
	done  chan struct{} // closed when err is known
	err   error
}

// errBehind gives a pass up that was begun on top of one that failed, or was held up for so long that the store has given up on it.
var errBehind = errors.New("the commit before failed or took too long")

// longFlight is when a pass that waits for the one before is repeated rather than gone on with: the store ends transactions in which
// nothing happens for a second.
const longFlight = 500 * time.Millisecond

// crowdedFor is how long a node that met another's changes counts as one of several.
const crowdedFor = 10 * time.Second

// alone reports whether the store is one that sends, and no other node works on it now. Among several a node's own work and the database's
// overlap by themselves, and a second transaction would only make batches smaller and the gate dearer.
func (s *Scheduler) alone() bool {
	return s.sender != nil && s.fold.serving.LastBeat.Sub(s.fold.metAt) > s.crowdedFor
}

// fly does the work of the hot calls in one transaction and returns when its commit is on its way.
func (s *Scheduler) fly(ctx context.Context, w *work) error {
	f := &flight{p: &pass{s: s}, w: w, start: time.Now(), done: make(chan struct{})}
	wait, err := s.sender.Send(ctx, func(tx Tx) error {
		return f.p.begin(ctx, tx, func(p *pass) error { return p.run(ctx, w) })
	})
	if err == nil {
		s.flight, s.fold.serving = f, f.p.served()
		go func() {
			defer close(f.done)
			f.err = wait()
		}()
		return nil
	}
	s.observe(f, err)
	if bad := s.land(ctx); errors.Is(bad, ErrBroken) {
		s.refuse(w.hot(), bad)
		return bad
	}
	return s.fall(ctx, w, err)
}

// landed returns a channel that is closed when there is a commit on its way no more; nil if there is none.
func (s *Scheduler) landed() <-chan struct{} {
	if s.flight == nil {
		return nil
	}
	return s.flight.done
}

// arrive waits for the commit on its way, if there is one, and answers its calls. One that failed is left for land.
func (s *Scheduler) arrive() error {
	f := s.flight
	if f == nil {
		return nil
	}
	start := time.Now()
	<-f.done
	if f.err != nil {
		return errBehind
	}
	s.flight = nil
	s.observe(f, nil)
	s.announce(f.p)
	s.conclude(f.p, f.w)
	if time.Since(start) > longFlight {
		return errBehind
	}
	return nil
}

// land is arrive where no transaction is open. It deals with a commit that failed, and returns why if its calls were refused.
func (s *Scheduler) land(ctx context.Context) error {
	_ = s.arrive() // seen below
	f := s.flight
	if f == nil {
		return nil
	}
	s.flight = nil
	s.observe(f, f.err)
	return s.fall(ctx, f.w, f.err)
}

// fall deals with hot calls whose transaction failed: they are repeated if that can help.
func (s *Scheduler) fall(ctx context.Context, w *work, err error) error {
	s.doubt()
	if !repeatable(err) && !errors.Is(err, ErrBadCall) {
		s.refuse(w.hot(), err)
		return err
	}
	if err := s.rebuild(ctx); err != nil {
		s.refuse(w.hot(), err)
		return err
	}
	return s.commitHot(ctx, w)
}

func (s *Scheduler) observe(f *flight, err error) {
	f.p.stats.Calls, f.p.stats.Took, f.p.stats.Err = f.w.count(), time.Since(f.start), faultOnly(err)
	s.cfg.Observe(f.p.stats)
}
