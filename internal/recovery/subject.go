package recovery

import (
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
)

// subject is what the monitor knows about one folder of the workspace, or about one lease whose folder has no sentinel.
type subject struct {
	folder string             // its name
	job    lessor.JobID       // zero if the folder's name is no id
	record *sentinel.Sentinel // nil if there is no valid sentinel
	err    error              // why the sentinel is invalid
	seen   observation
	stored *storedJob
	watch  *watch // nil unless start-up waits for this command

	alert   lessor.AlertKind // the alert that is raised
	alertOf lessor.TenantID  // its tenant
	ended   ended
	stopped int64 // the fence that was asked to stop
	givenUp pulse // the last pulse of a command that was given up
	reason  rules.DeathReason
	cleaned pulse     // the pulse whose folder is being removed
	next    time.Time // the next check; zero means only with the next scan
	round   int       // the last round that was about it
}

// ended is how the lease of a sentinel ended, loaded once.
type ended struct {
	fence   int64
	outcome rules.Outcome
}

// observation says when a pulse was seen, by the monitor's clock.
type observation struct {
	pulse pulse
	first time.Time
	last  time.Time
	other time.Time // when the pulse before was last seen; zero if there was none
}

// pulse identifies one write of a sentinel.
type pulse struct {
	fence, seq int64
	beat       lessor.Instant // of a writer that does not count
}

func pulseOf(r *sentinel.Sentinel) pulse {
	if r.Seq != 0 {
		return pulse{fence: r.Fence, seq: r.Seq}
	}
	return pulse{fence: r.Fence, beat: r.LastHeartbeat}
}

// note records a pulse that was seen at some moment between from and to. Each bound of its age uses the safe end.
func (s *observation) note(p pulse, from, to time.Time) {
	if s.pulse != p {
		s.other = s.last
		s.pulse, s.first = p, to
	}
	s.last = from
}

// storedJob is what the store knows about a job.
type storedJob struct {
	scheduler.Watched
	known bool
	at    time.Time // when it was loaded, by the monitor's clock
	round int       // the round that used it
}

// held returns the live lease that the folder speaks for, nil if there is none.
func (m *Monitor) held(s *subject) *rules.Held {
	if !s.stored.known || s.stored.Over || !rules.SpeaksFor(s.stored.Held, s.fence(), m.workspace.ID()) {
		return nil
	}
	return s.stored.Held
}

// fence returns the fence in the sentinel, 0 if there is none.
func (s *subject) fence() int64 {
	if s.record == nil {
		return 0
	}
	return s.record.Fence
}

// lastFence returns the fence of the lease that the sentinel speaks for. A sentinel without a fence speaks for the
// job's last lease.
func (s *subject) lastFence() int64 {
	if s.fence() != 0 {
		return s.fence()
	}
	return s.stored.Fence
}

// beat returns the last pulse of a command, 0 without a sentinel.
func (s *subject) beat() lessor.Instant {
	if s.record == nil {
		return 0
	}
	return s.record.LastHeartbeat
}

// age returns how long a sentinel counts as silent. A missing one counts from when it was last seen, or from the grant.
func (s *subject) age(now moment) time.Duration {
	switch {
	case s.record == nil && s.stored.Held == nil:
		return 0
	case s.vanished():
		return now.Sub(s.seen.last)
	case s.record == nil:
		return max(s.stored.Now.Sub(s.stored.Held.IssuedAt)+now.Sub(s.stored.at), 0)
	}
	times := rules.PulseTimes{SincePulse: now.wall.Sub(s.record.LastHeartbeat), SinceSeen: now.Sub(s.seen.first)}
	if !s.seen.other.IsZero() {
		times.SinceOther = new(now.Sub(s.seen.other))
	}
	return times.Age()
}

// vanished reports whether the sentinel of the live lease was seen before and is missing now.
func (s *subject) vanished() bool {
	h, seen := s.stored.Held, s.seen.pulse
	return s.record == nil && h != nil && seen != (pulse{}) && (seen.fence == 0 || seen.fence == h.Turn.Fence)
}

func (m *Monitor) evidence(s *subject, now moment) rules.Evidence {
	p := s.seen.pulse
	givenUp := rules.GivenUp(s.reason, p == s.givenUp, p.fence != 0 && p.fence == s.givenUp.fence)
	return rules.Evidence{
		Sentinel: s.record != nil, Live: m.held(s) != nil, GivenUp: givenUp, Age: s.age(now),
		SinceBeat: s.stored.SinceBeat + now.Sub(s.stored.at), State: s.stored.State, Final: s.stored.Final,
	}
}

func (m *Monitor) thresholds() rules.Thresholds {
	return rules.Thresholds{StaleAfter: m.cfg.StaleAfter, DeadAfter: m.cfg.DeadAfter}
}

// verdict judges a subject. An empty verdict says that there is nothing to judge.
func (m *Monitor) verdict(s *subject, now moment) rules.Verdict {
	return rules.Judge(m.evidence(s, now), m.thresholds())
}

// nextCheck returns when a subject is to be checked again: when its verdict may change, or when its lease may be about
// to lapse. Zero means not before the next scan.
func (m *Monitor) nextCheck(s *subject, now moment) time.Time {
	wait := rules.VerdictChanges(m.evidence(s, now), m.thresholds())
	if s.stored.Over {
		wait = retryAfter // the scheduler is about to end the lease
	}
	lapse := m.untilLapse(s, now)
	if wait == 0 || lapse != 0 && lapse < wait {
		wait = lapse
	}
	if wait == 0 {
		return time.Time{}
	}
	return now.Add(wait)
}

// lastCheck is the time before the end of a lease at which its command is checked for the last time.
const lastCheck = 100 * time.Millisecond

// untilLapse returns when to read the exit record while the lease lives: halfway to its end, and halfway again, so that
// the record is found before the job goes to another worker. 0 means not at all.
func (m *Monitor) untilLapse(s *subject, now moment) time.Duration {
	h := m.held(s)
	if h == nil {
		return 0
	}
	left := s.leaseLeft(now)
	switch {
	case left > h.TTL/2:
		return max(left-h.TTL/2, time.Millisecond)
	case left > lastCheck:
		return left / 2
	}
	return 0
}

// leaseLeft returns how long the lease lives without another heartbeat.
func (s *subject) leaseLeft(now moment) time.Duration {
	return s.stored.EndsAt.Sub(s.stored.Now) - now.Sub(s.stored.at)
}

// isHung reports whether a command pulses although its lease expired for lack of heartbeats.
func (m *Monitor) isHung(s *subject, now moment) bool {
	return m.isZombie(s, now) && s.ended == ended{s.lastFence(), rules.OutcomeExpired}
}

// isZombie reports whether a command pulses although its lease is over. A fence that the store never gave out does not
// count.
func (m *Monitor) isZombie(s *subject, now moment) bool {
	if s.record == nil || !s.stored.known || s.stored.Over || s.lastFence() == 0 || s.stored.Fence < s.lastFence() {
		return false
	}
	live := s.stored.Held != nil && s.stored.Held.Turn.Fence == s.lastFence()
	return !live && s.age(now) < m.cfg.StaleAfter
}
