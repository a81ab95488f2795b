package recovery

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// watch is a command that was found at the start and may still be alive.
type watch struct {
	fence    int64
	deadline time.Time
	until    lessor.Instant    // the deadline by the wall clock
	beatAt   lessor.Instant    // the last heartbeat of the lease when the watch began
	reason   rules.DeathReason // if there is no sign of life
}

// recover decides about the commands that were found at the start. It watches each until the command shows a sign of
// life or the time is over. Meanwhile no node ends its lease.
func (m *Monitor) recover(ctx context.Context, checked []*subject, first bool, now moment) error {
	if first {
		m.beginWatches(checked, now)
	}
	var alive []*subject
	var dead []death
	hold := map[lessor.LeaseID]lessor.Instant{}
	for _, s := range checked {
		if s.watch == nil {
			continue
		}
		h := m.held(s)
		switch {
		case h == nil || h.Turn.Fence != s.watch.fence:
			m.endWatch(s)
		case s.record != nil && s.age(now) < m.cfg.ResumedWithin, h.BeatAt != s.watch.beatAt:
			alive = append(alive, s)
		case !now.Before(s.watch.deadline):
			dead = append(dead, death{s, h, s.watch.reason})
		default:
			// The lease is held a little longer than the watch, so that the scheduler does not end it before the watch
			// does; and again if the store's clock was set ahead meanwhile.
			if left := s.watch.deadline.Sub(now.Time); s.stored.EndsAt < s.stored.Now.Add(left+m.cfg.Poll/2) {
				hold[h.ID] = s.stored.Now.Add(left + m.cfg.Poll)
			}
		}
		if s.watch != nil {
			s.next = earlier(now.Add(m.cfg.Poll), s.watch.deadline)
		}
	}
	if err := m.reattach(ctx, alive, now); err != nil {
		return err
	}
	if len(hold) > 0 {
		if err := m.sched.Watch(ctx, hold); err != nil {
			return err
		}
	}
	if err := m.endDead(ctx, dead); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range dead {
		d.subject.watch = nil
	}
	m.results.settle(m.watching(), now.wall)
	return nil
}

// beginWatches begins a watch for every sentinel that speaks for a live lease.
func (m *Monitor) beginWatches(checked []*subject, now moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, s := range checked {
		h := m.held(s)
		if h == nil || s.record == nil {
			continue
		}
		n++
		left, reason := rules.WatchFor(s.age(now), m.cfg.Limit, m.cfg.Watch, s.leaseLeft(now))
		s.watch = &watch{
			fence: h.Turn.Fence, deadline: now.Add(left), until: now.wall.Add(left), beatAt: h.BeatAt, reason: reason,
		}
	}
	m.results.begin(now, n)
}

// reattach records that commands showed a sign of life under their old leases.
func (m *Monitor) reattach(ctx context.Context, alive []*subject, now moment) error {
	if len(alive) == 0 {
		return nil
	}
	ids := make([]lessor.LeaseID, len(alive))
	for i, s := range alive {
		ids[i] = s.stored.Held.ID
	}
	if err := m.sched.Reattach(ctx, ids...); err != nil {
		return err
	}
	m.log.Info("running commands were found again", "jobs", len(alive))
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range alive {
		m.results.add(m.reattached(s, now))
		s.watch = nil
	}
	return nil
}

func (m *Monitor) reattached(s *subject, now moment) result {
	return result{
		job: s.job, fence: s.watch.fence, status: lessor.RecoveredReattached, at: now.wall,
		took: now.Sub(m.results.began), beat: s.beat(),
	}
}

// endWatch ends the watch of a command whose lease is over: the command reported its end, or the lease was ended.
func (m *Monitor) endWatch(s *subject) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.stored.State == lessor.Completed {
		m.results.add(m.reattached(s, m.now()))
	}
	s.watch = nil
}

// watching counts the watches that go on.
func (m *Monitor) watching() (n int) {
	for _, s := range m.subjects {
		if s.watch != nil {
			n++
		}
	}
	return n
}

// maxResults bounds the results that are kept: the oldest is dropped.
const maxResults = 10_000

// result is the outcome of one attempt.
type result struct {
	job    lessor.JobID
	fence  int64
	status lessor.RecoveredStatus // reattached or dead
	reason rules.DeathReason
	at     lessor.Instant
	took   time.Duration  // from the start to the reattachment
	beat   lessor.Instant // the last pulse
}

// results are the outcomes of the commands that were found since the start.
type results struct {
	began      time.Time // by the monitor's clock; zero = before the first scan
	startedAt  lessor.Instant
	endedAt    lessor.Instant
	watched    int
	all        []result
	reattached int
	took       time.Duration // of all reattachments
	dead       int
}

func (r *results) begun() bool { return !r.began.IsZero() }

func (r *results) begin(now moment, watched int) {
	r.began, r.watched = now.Time, watched
	if watched > 0 {
		r.startedAt = now.wall
	}
}

// settle notes that recovery is complete when the last watch has ended.
func (r *results) settle(watching int, now lessor.Instant) {
	if r.watched > 0 && watching == 0 && r.endedAt == 0 {
		r.endedAt = now
	}
}

func (r *results) add(one result) {
	if one.status == lessor.RecoveredReattached {
		r.reattached++
		r.took += one.took
	} else {
		r.dead++
	}
	if r.all = append(r.all, one); len(r.all) > maxResults {
		r.all = r.all[1:]
	}
}

func (r *results) state() lessor.RecoveryState {
	switch {
	case r.watched == 0:
		return lessor.RecoveryIdle
	case r.endedAt == 0:
		return lessor.RecoveryWatching
	}
	return lessor.RecoveryCompleted
}
