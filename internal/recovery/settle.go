package recovery

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/sentinel"
)

// How a job that is found dead is told about.
const (
	whyStopped    = "Heartbeat stopped"
	whyNotResumed = "Heartbeat not resumed after restart"
	whyTooOld     = "Server restart, heartbeat not resumed"
)

// burial is a lease that ends because its command is dead.
type burial struct {
	subject *subject
	lease   *rules.Held
	why     string
}

// settle draws the consequences of a look: exit records first, then what start-up waits for, then verdicts.
func (m *Monitor) settle(ctx context.Context, touched []*subject) error {
	first := !m.results.begun()
	some := touched
	if !first {
		some = m.unquiet(touched)
	}
	if err := m.conclude(ctx, some, first); err != nil {
		return err
	}
	now := m.now()
	if err := m.recover(ctx, some, first, now); err != nil {
		return err
	}
	if err := m.lookUpEnds(ctx, some, now); err != nil {
		return err
	}
	m.stopZombies(some, now)
	if err := m.bury(ctx, m.deadOnes(some, now)); err != nil {
		return err
	}
	if err := m.alarm(ctx, some, now); err != nil {
		return err
	}
	m.cleanDead(some, now)
	m.forget(touched, now)
	return nil
}

// unquiet leaves out those of which there is nothing to say: fresh, under a live lease that has missed no beat, and without an alert.
func (m *Monitor) unquiet(touched []*subject) (some []*subject) {
	now := m.now()
	for _, s := range touched {
		h := m.held(s)
		if h == nil || s.record == nil || s.watch != nil || s.alert != "" || missedBeat(h, s.facts.Unbeaten) {
			some = append(some, s)
		} else if v, _ := m.verdict(s, now); v != rules.Fresh {
			some = append(some, s)
		}
	}
	return some
}

// conclude completes jobs whose command has ended and could not say so, from its exit record. It is the final word, however fresh the
// sentinel; those whose lease has missed no beat are not asked for theirs, since their shim will report by itself.
func (m *Monitor) conclude(ctx context.Context, touched []*subject, first bool) error {
	now := m.now()
	var silent []*subject
	for _, s := range touched {
		h := m.held(s)
		if h == nil {
			continue
		}
		v, _ := m.verdict(s, now)
		if first || s.watch != nil || v != rules.Fresh || missedBeat(h, s.facts.Unbeaten) {
			silent = append(silent, s)
		}
	}
	return each(silent, func(s *subject) error { return m.concludeOne(ctx, s) })
}

// concludeOne completes a job if its exit record speaks for its lease.
func (m *Monitor) concludeOne(ctx context.Context, s *subject) error {
	f, err := m.workspace.Folder(s.job)
	if err != nil {
		return nil // no folder, or none of ours: it says nothing
	}
	defer func() { _ = f.Close() }() // nothing was written through it that is not synced
	exit, err := f.Exit()
	h := m.held(s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		m.log.Warn("an exit record is not obeyed", "job_id", s.folder, "error", err)
		return nil
	case exit.LeaseID != h.ID || !rules.Speaks(h, exit.Fence, m.workspace.ID()):
		return nil
	}
	err = m.report(ctx, h, exit)
	if err != nil && !isRefusal(err) {
		return err
	}
	if err == nil {
		m.log.Info("completed from its exit record", "job_id", s.folder, "status", exit.Status)
		m.over(s, exit.Status)
		err = dropSentinel(f, exit.Fence)
	}
	if err != nil {
		m.log.Warn("an exit record could not be followed to its end", "job_id", s.folder, "error", err)
	}
	return nil
}

// isRefusal tells what concerns one job from what keeps us from watching all: one folder must not blind the monitor to the others.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*lessor.Error](err)
	return ok && e.Code != lessor.CodeUnavailable && e.Code != lessor.CodeRateLimited && e.Code != lessor.CodeInternal
}

// report ends a lease as its exit record says. What the server refuses is a failure, as it would be from a shim.
func (m *Monitor) report(ctx context.Context, h *rules.Held, exit sentinel.Exit) error {
	err := m.sched.Conclude(ctx, monitor, h.ID, exit.Completion())
	switch lessor.CodeOf(err) {
	case lessor.CodeConflict, lessor.CodeInvalidValue, lessor.CodeInvalidRequest, lessor.CodePayloadTooLarge:
		return m.sched.Conclude(ctx, monitor, h.ID, lessor.Completion{
			WorkerID: &h.Worker, Status: new(string(lessor.Failed)), Error: new("the exit record is refused: " + err.Error()),
		})
	}
	return err
}

// dropSentinel takes away the pulse of a command that has ended, if its shim is not there to do it.
func dropSentinel(f *sentinel.Folder, fence int64) error {
	lock, err := f.Lock()
	if err != nil || lock == nil {
		return err
	}
	defer func() { _ = lock.Close() }() // it gives the lock back
	if record, err := f.Sentinel(); err != nil || record.Fence != fence {
		return nil // none, or not one of that command
	}
	return f.RemoveSentinel()
}

// over notes that the lease of s has ended, and how.
func (m *Monitor) over(s *subject, state lessor.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.facts.Held, s.facts.State = nil, state
}

// deadOnes returns the leases whose command is dead by its sentinel.
func (m *Monitor) deadOnes(touched []*subject, now moment) (dead []burial) {
	for _, s := range touched {
		h := m.held(s)
		if h == nil || s.watch != nil || s.record == nil {
			continue
		}
		if v, _ := m.verdict(s, now); v == rules.Dead {
			dead = append(dead, burial{s, h, whyStopped})
		}
	}
	return dead
}

// bury ends leases whose command is dead. One that was over already is no matter.
func (m *Monitor) bury(ctx context.Context, dead []burial) error {
	return each(dead, func(b burial) error {
		err := m.sched.Bury(ctx, monitor, b.lease.ID, b.why)
		if err != nil && !isRefusal(err) {
			return err
		}
		m.over(b.subject, lessor.Failed)
		if err == nil {
			m.giveUp(b)
		}
		return nil
	})
}

// giveUp notes that a job was found dead.
func (m *Monitor) giveUp(b burial) {
	m.log.Warn("job is dead", "job_id", b.subject.folder, "reason", b.why)
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.subject.record != nil {
		b.subject.buried, b.subject.why = b.subject.sight.content, b.why
	}
	m.results.add(result{
		job: b.subject.job, fence: b.lease.Turn.Fence, status: lessor.RecoveredDead, why: b.why, at: m.now().wall, beat: b.subject.beat(),
	})
}

// beat is the last that was heard of a command.
func (s *subject) beat() lessor.Instant {
	if s.record == nil {
		return 0
	}
	return s.record.LastHeartbeat
}

// lookUpEnds learns how the leases of commands that still pulse have ended.
func (m *Monitor) lookUpEnds(ctx context.Context, touched []*subject, now moment) error {
	for _, s := range touched {
		if !m.isZombie(s, now) || s.ended.fence == s.lastFence() {
			continue
		}
		o, err := m.sched.Outcome(ctx, s.job, s.lastFence())
		if err != nil {
			return err
		}
		m.mu.Lock()
		s.ended = ended{s.lastFence(), o}
		m.mu.Unlock()
	}
	return nil
}

// stopZombies tells commands that pulse without a lease to end, each once.
func (m *Monitor) stopZombies(touched []*subject, now moment) {
	for _, s := range touched {
		if m.isZombie(s, now) && s.stopped != s.lastFence() {
			m.stop(s)
		}
	}
}

func (m *Monitor) stop(s *subject) {
	f, err := m.workspace.Folder(s.job)
	if err != nil {
		return // it is gone
	}
	defer func() { _ = f.Close() }() // all that was written is synced
	if record, err := f.Sentinel(); err != nil || record.Fence != s.record.Fence {
		return // it has ended meanwhile
	}
	if err := f.AskToStop(s.lastFence() + 1); err != nil {
		m.log.Warn("a command without a lease could not be told to stop", "job_id", s.folder, "error", err)
		return
	}
	s.stopped = s.lastFence()
}

// forget plans the next look at each subject, and lets go of those of which nothing is left.
func (m *Monitor) forget(touched []*subject, now moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range touched {
		if s.record == nil && s.err == nil && s.watch == nil && m.held(s) == nil && !s.facts.Over {
			delete(m.subjects, s.folder)
			continue
		}
		if s.watch == nil {
			s.next = m.nextLook(s, now)
		}
	}
}

// beside is how many calls are under way at once: the scheduler answers calls that wait together in one commit.
const beside = 64

// each calls do for all, beside each other, and returns what went wrong.
func each[T any](all []T, do func(T) error) error {
	var mu sync.Mutex
	var errs []error
	var calls sync.WaitGroup
	turn := make(chan struct{}, beside)
	for _, one := range all {
		turn <- struct{}{}
		calls.Go(func() {
			defer func() { <-turn }()
			if err := do(one); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	calls.Wait()
	return errors.Join(errs...)
}
