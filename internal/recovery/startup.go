package recovery

import (
	"context"
	"time"

	"lessor"
)

// watch is a command that was found at the start and may still be alive.
type watch struct {
	fence    int64
	deadline time.Time
	until    lessor.Instant // the deadline as it is shown
	beaten   lessor.Instant // the lease's last beat when the watch began
	why      string         // what it is told about if nothing is heard
}

// recover decides about the commands that were found at the start: each is watched until it is heard of, or its time is over.
// Their leases are held meanwhile, on every node.
func (m *Monitor) recover(ctx context.Context, touched []*subject, first bool, now moment) error {
	if first {
		m.beginWatches(touched, now)
	}
	var alive []*subject
	var dead []burial
	keep := map[lessor.LeaseID]lessor.Instant{}
	for _, s := range touched {
		if s.watch == nil {
			continue
		}
		h := m.held(s)
		switch {
		case h == nil || h.Turn.Fence != s.watch.fence:
			m.endWatch(s)
		case s.record != nil && s.age(now) < m.cfg.ResumedWithin, h.BeatAt != s.watch.beaten:
			alive = append(alive, s)
		case !now.Before(s.watch.deadline):
			dead = append(dead, burial{s, h, s.watch.why})
		default:
			// A little longer than the watch, so that the sweep does not end the lease before we have decided; and once more if the
			// store's clock was set ahead meanwhile.
			if left := s.watch.deadline.Sub(now.Time); s.facts.EndsAt < s.facts.Now.Add(left+m.cfg.Poll/2) {
				keep[h.ID] = s.facts.Now.Add(left + m.cfg.Poll)
			}
		}
		if s.watch != nil {
			s.next = earlier(now.Add(m.cfg.Poll), s.watch.deadline)
		}
	}
	if err := m.reattach(ctx, alive, now); err != nil {
		return err
	}
	if len(keep) > 0 {
		if err := m.sched.Watch(ctx, keep); err != nil {
			return err
		}
	}
	if err := m.bury(ctx, dead); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range dead {
		b.subject.watch = nil
	}
	m.results.settle(m.watching(), now.wall)
	return nil
}

// beginWatches begins a watch for every sentinel that speaks for a live lease. One that is too old is dead unless its lease is
// beaten before it ends by itself.
func (m *Monitor) beginWatches(touched []*subject, now moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, s := range touched {
		h := m.held(s)
		if h == nil || s.record == nil {
			continue
		}
		n++
		left, why := m.cfg.Watch, whyNotResumed
		if s.age(now) >= m.cfg.Limit {
			left, why = max(s.facts.EndsAt.Sub(s.facts.Now)-now.Sub(s.facts.at), 0), whyTooOld
		}
		s.watch = &watch{
			fence: h.Turn.Fence, deadline: now.Add(left), until: now.wall.Add(left), beaten: h.BeatAt, why: why,
		}
	}
	m.results.begin(now, n)
}

// reattach notes that commands were heard of under their old leases.
func (m *Monitor) reattach(ctx context.Context, alive []*subject, now moment) error {
	if len(alive) == 0 {
		return nil
	}
	ids := make([]lessor.LeaseID, len(alive))
	for i, s := range alive {
		ids[i] = s.facts.Held.ID
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
		job: s.job, fence: s.watch.fence, status: lessor.RecoveredReattached, at: now.wall, took: now.Sub(m.results.began), beat: s.beat(),
	}
}

// endWatch ends the watch of a command whose lease is over: it reported its end, or somebody took the lease.
func (m *Monitor) endWatch(s *subject) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.facts.State == lessor.Completed {
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

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// maxResults bounds what is remembered: the oldest goes.
const maxResults = 10_000

// result is what became of one attempt.
type result struct {
	job    lessor.JobID
	fence  int64
	status lessor.RecoveredStatus // reattached or dead
	why    string
	at     lessor.Instant
	took   time.Duration  // from the start to the reattachment
	beat   lessor.Instant // the last that was heard
}

// results is what became of the commands that were found, since the start.
type results struct {
	began      time.Time // by our own clock; zero = nothing was looked at yet
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

// settle notes that start-up is done when nothing is waited for any more.
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
