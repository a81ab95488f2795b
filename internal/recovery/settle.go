package recovery

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/rules"
	"lessor/internal/sentinel"
)

// death is a lease that ends because its command is dead.
type death struct {
	subject *subject
	lease   *rules.Held
	reason  rules.DeathReason
}

// settle acts on what a check found: on exit records first, then on start-up's watches, then on verdicts.
func (m *Monitor) settle(ctx context.Context, checked []*subject) error {
	first := !m.results.begun()
	some := checked
	if !first {
		some = m.needAttention(checked)
	}
	if err := m.conclude(ctx, some, first); err != nil {
		return err
	}
	now := m.now()
	if err := m.recover(ctx, some, first, now); err != nil {
		return err
	}
	if err := m.loadOutcomes(ctx, some, now); err != nil {
		return err
	}
	m.stopZombies(some, now)
	if err := m.endDead(ctx, m.deadCommands(some, now)); err != nil {
		return err
	}
	if err := m.updateAlerts(ctx, some, now); err != nil {
		return err
	}
	m.cleanDead(some, now)
	m.planChecks(checked, now)
	return nil
}

// needAttention leaves out healthy subjects: fresh, without an alert, under a live lease that has missed no heartbeat.
func (m *Monitor) needAttention(checked []*subject) (some []*subject) {
	now := m.now()
	for _, s := range checked {
		h := m.held(s)
		if h == nil || s.record == nil || s.watch != nil || s.alert != "" ||
			rules.MissedBeat(h, s.stored.SinceBeat) || m.verdict(s, now) != rules.Fresh {
			some = append(some, s)
		}
	}
	return some
}

// conclude completes jobs from the exit records of commands that have ended without reporting it. The record decides,
// however fresh the sentinel. It is not read while the lease gets heartbeats, because the shim then reports by itself.
func (m *Monitor) conclude(ctx context.Context, checked []*subject, first bool) error {
	now := m.now()
	var silent []*subject
	for _, s := range checked {
		h := m.held(s)
		if h != nil && (first || s.watch != nil || m.verdict(s, now) != rules.Fresh ||
			rules.MissedBeat(h, s.stored.SinceBeat)) {
			silent = append(silent, s)
		}
	}
	return each(silent, func(s *subject) error { return m.concludeOne(ctx, s) })
}

// A shim that lives reports by itself, after the rest of its command's output. It has shimTime to do so, for which its
// server may just have come back, and is checked every shimPoll.
const (
	shimTime = 3 * time.Second
	shimPoll = 50 * time.Millisecond
)

// awaitShim returns when no shim holds a folder, or after shimTime.
func awaitShim(ctx context.Context, f *sentinel.Folder) {
	ctx, cancel := context.WithTimeout(ctx, shimTime)
	defer cancel()
	tick := time.NewTicker(shimPoll)
	defer tick.Stop()
	for {
		if held, err := f.Locked(); !held || err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// concludeOne completes a job if its exit record speaks for its lease.
func (m *Monitor) concludeOne(ctx context.Context, s *subject) error {
	f, err := m.workspace.Folder(s.job)
	if err != nil {
		return nil // there is no folder of ours
	}
	defer func() { _ = f.Close() }() // everything written is synced
	exit, err := f.Exit()
	h := m.held(s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		m.log.Warn("an exit record is invalid and ignored", "job_id", s.folder, "error", err)
		return nil
	case exit.LeaseID != h.ID || !rules.SpeaksFor(h, exit.Fence, m.workspace.ID()):
		return nil
	}
	awaitShim(ctx, f)
	err = m.report(ctx, h, exit)
	if err != nil && !isRefusal(err) {
		return err
	}
	if err == nil {
		m.log.Info("completed from its exit record", "job_id", s.folder, "status", exit.Status)
		m.noteEnd(s, exit.Status)
		err = dropSentinel(f, exit.Fence)
	}
	if err != nil {
		m.log.Warn("an exit record could not be processed", "job_id", s.folder, "error", err)
	}
	return nil
}

// isRefusal reports whether an error concerns one job only. Other errors stop the round; one bad folder must not.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*lessor.Error](err)
	return ok && e.Code != lessor.CodeUnavailable && e.Code != lessor.CodeRateLimited && e.Code != lessor.CodeInternal
}

// report ends a lease as its exit record says. If the scheduler refuses the record, the attempt fails.
func (m *Monitor) report(ctx context.Context, h *rules.Held, exit sentinel.Exit) error {
	err := m.sched.Conclude(ctx, monitor, h.ID, exit.Completion())
	switch lessor.CodeOf(err) {
	case lessor.CodeConflict, lessor.CodeInvalidValue, lessor.CodeInvalidRequest, lessor.CodePayloadTooLarge:
		return m.sched.Conclude(ctx, monitor, h.ID, lessor.Completion{
			WorkerID: &h.Worker, Status: new(string(lessor.Failed)),
			Error: new("the exit record is refused: " + err.Error()),
		})
	}
	return err
}

// dropSentinel removes the sentinel of a command that has ended, unless its shim is there to do it.
func dropSentinel(f *sentinel.Folder, fence int64) error {
	lock, err := f.Lock()
	if err != nil || lock == nil {
		return err
	}
	defer func() { _ = lock.Close() }() // closing it releases the lock
	if record, err := f.Sentinel(); err != nil || record.Fence != fence {
		return nil // it is gone, or another command's
	}
	return f.RemoveSentinel()
}

// noteEnd records how the lease of s has ended.
func (m *Monitor) noteEnd(s *subject, state lessor.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.stored.Held, s.stored.State = nil, state
}

// deadCommands returns the leases whose command is dead by its sentinel.
func (m *Monitor) deadCommands(checked []*subject, now moment) (dead []death) {
	for _, s := range checked {
		h := m.held(s)
		if h != nil && s.watch == nil && s.record != nil && m.verdict(s, now) == rules.Dead {
			dead = append(dead, death{s, h, rules.DeathHeartbeatStopped})
		}
	}
	return dead
}

// endDead ends leases whose command is dead. A lease that is over already is left out.
func (m *Monitor) endDead(ctx context.Context, dead []death) error {
	return each(dead, func(d death) error {
		err := m.sched.EndDead(ctx, monitor, d.lease.ID, d.reason)
		if err != nil && !isRefusal(err) {
			return err
		}
		m.noteEnd(d.subject, lessor.Failed)
		if err == nil {
			m.giveUp(d)
		}
		return nil
	})
}

// giveUp records that a command was found dead.
func (m *Monitor) giveUp(d death) {
	m.log.Warn("job is dead", "job_id", d.subject.folder, "reason", string(d.reason))
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.subject.record != nil {
		d.subject.givenUp, d.subject.reason = d.subject.seen.pulse, d.reason
	}
	m.results.add(result{
		job: d.subject.job, fence: d.lease.Turn.Fence, status: lessor.RecoveredDead, reason: d.reason, at: m.now().wall,
		beat: d.subject.beat(),
	})
}

// loadOutcomes loads how the leases of commands that still pulse have ended.
func (m *Monitor) loadOutcomes(ctx context.Context, checked []*subject, now moment) error {
	for _, s := range checked {
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

// stopZombies asks commands that pulse without a lease to end, each once.
func (m *Monitor) stopZombies(checked []*subject, now moment) {
	for _, s := range checked {
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
	defer func() { _ = f.Close() }() // everything written is synced
	if record, err := f.Sentinel(); err != nil || record.Fence != s.record.Fence {
		return // the command has ended meanwhile
	}
	if err := f.AskToStop(s.lastFence() + 1); err != nil {
		m.log.Warn("a command without a lease could not be asked to stop", "job_id", s.folder, "error", err)
		return
	}
	s.stopped = s.lastFence()
}

// planChecks plans the next check of each subject and forgets those of which nothing is left.
func (m *Monitor) planChecks(checked []*subject, now moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range checked {
		if s.record == nil && s.err == nil && s.watch == nil && m.held(s) == nil && !s.stored.Over {
			delete(m.subjects, s.folder)
			continue
		}
		if s.watch == nil {
			s.next = m.nextCheck(s, now)
		}
	}
}

// maxCalls bounds concurrent calls: the scheduler answers calls that wait together in one commit.
const maxCalls = 64

// each calls do for every item, up to maxCalls at a time, and joins the errors.
func each[T any](all []T, do func(T) error) error {
	var mu sync.Mutex
	var errs []error
	var calls fault.Group
	turn := make(chan struct{}, maxCalls)
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
