package recovery

import (
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
)

// subject is what is known about one folder of the workspace, or about one lease whose folder has no sentinel.
type subject struct {
	folder string       // its name
	job    lessor.JobID // zero if the folder's name is no id
	record *sentinel.Sentinel
	err    error // why what lies there is not obeyed
	sight  sight
	facts  *facts
	watch  *watch // nil = not one that start-up waits for

	alert   lessor.AlertKind // the one that is raised
	alertOf lessor.TenantID  // whose it is
	ended   ended
	stopped int64   // the fence that was told to stop
	buried  content // the pulse after which it was given up
	why     string  // it was
	cleaned content // the pulse whose folder is being cleaned away
	next    time.Time
	look    int // the last that was about it
}

// ended is how the lease of a sentinel ended, looked up once.
type ended struct {
	fence   int64
	outcome rules.Outcome
}

// sight is when content was seen, by our own clock.
type sight struct {
	content content
	first   time.Time
	last    time.Time
	other   time.Time // the last look at the content before; zero = there was none
}

// content tells one pulse from another.
type content struct {
	fence, seq int64
	beat       lessor.Instant // for a writer that does not count
}

func contentOf(r *sentinel.Sentinel) content {
	if r.Seq != 0 {
		return content{fence: r.Fence, seq: r.Seq}
	}
	return content{fence: r.Fence, beat: r.LastHeartbeat}
}

// see notes content that was seen between two moments. Where it matters which of them, the age of a pulse is bounded by the one that is
// surely right.
func (s *sight) see(c content, from, to time.Time) {
	if s.content != c {
		s.other = s.last
		s.content, s.first = c, to
	}
	s.last = from
}

// facts is what the store knows about a job.
type facts struct {
	scheduler.Watched
	known bool
	at    time.Time // by our own clock
	look  int       // the one that took it in
}

// held returns the lease that the folder speaks for: live, and of the fence that its sentinel carries. Nil if there is none.
func (m *Monitor) held(s *subject) *rules.Held {
	if !s.facts.known || s.facts.Over || !rules.Speaks(s.facts.Held, s.fence(), m.workspace.ID()) {
		return nil
	}
	return s.facts.Held
}

// fence is the one that the sentinel carries, 0 if none.
func (s *subject) fence() int64 {
	if s.record == nil {
		return 0
	}
	return s.record.Fence
}

// age is how long a sentinel counts as silent: one that is missing, since it was last seen, or since the grant.
func (s *subject) age(now moment) time.Duration {
	switch {
	case s.record == nil && s.facts.Held == nil:
		return 0
	case s.vanished():
		return now.Sub(s.sight.last)
	case s.record == nil:
		return max(s.facts.Now.Sub(s.facts.Held.IssuedAt)+now.Sub(s.facts.at), 0)
	}
	seen := rules.Sighting{SinceBeat: now.wall.Sub(s.record.LastHeartbeat), SinceSeen: now.Sub(s.sight.first)}
	if !s.sight.other.IsZero() {
		seen.SinceOther = new(now.Sub(s.sight.other))
	}
	return seen.Age()
}

// vanished reports whether there was a sentinel of the live lease, and is none any more.
func (s *subject) vanished() bool {
	h, seen := s.facts.Held, s.sight.content
	return s.record == nil && h != nil && seen != (content{}) && (seen.fence == 0 || seen.fence == h.Turn.Fence)
}

// verdict judges a subject. One that was given up stays dead until it pulses again. One that has no sentinel is never dead, and before
// stale_after there is no verdict on it.
func (m *Monitor) verdict(s *subject, now moment) (v rules.Verdict, age time.Duration) {
	age = s.age(now)
	v = rules.Judge(age, m.cfg.StaleAfter, m.cfg.DeadAfter)
	switch {
	case s.record == nil && (m.held(s) == nil || v == rules.Fresh):
		return "", age
	case s.record != nil && s.sight.content == s.buried:
		return rules.Dead, age
	case s.record == nil, v == rules.Dead && m.beaten(s, now):
		return rules.Stale, age
	}
	return v, age
}

// beaten reports whether the lease that s speaks for was beaten within stale_after.
func (m *Monitor) beaten(s *subject, now moment) bool {
	return m.held(s) != nil && s.facts.Unbeaten+now.Sub(s.facts.at) < m.cfg.StaleAfter
}

// aMoment is the least time between two looks, so that clocks which run differently never make the monitor run hot.
const aMoment = time.Millisecond

// nextLook is when a subject is to be looked at again: at its crossing, or when its lease may be about to lapse.
func (m *Monitor) nextLook(s *subject, now moment) time.Time {
	at, lapse := m.crossing(s, now), m.lapsing(s, now)
	if at.IsZero() || !lapse.IsZero() && lapse.Before(at) {
		return lapse
	}
	return at
}

// lastLook is how near to the end of its lease a command is looked at for the last time.
const lastLook = 100 * time.Millisecond

// lapsing is when to look whether a command has ended without a word, for as long as its lease lives: halfway to the lease's end, and
// halfway again, so that an exit record is found before the job is given to somebody else. Zero = not at all.
func (m *Monitor) lapsing(s *subject, now moment) time.Time {
	h := m.held(s)
	if h == nil {
		return time.Time{}
	}
	left := s.facts.EndsAt.Sub(s.facts.Now) - now.Sub(s.facts.at)
	switch {
	case left > h.TTL/2:
		return now.Add(max(left-h.TTL/2, aMoment))
	case left > lastLook:
		return now.Add(left / 2)
	}
	return time.Time{}
}

// missedBeat reports whether a beat of a lease is overdue: a worker is told to beat three times a ttl.
func missedBeat(h *rules.Held, unbeaten time.Duration) bool { return unbeaten > h.TTL*3/8 }

// crossing is when the verdict may change if nothing is heard. Zero = never.
func (m *Monitor) crossing(s *subject, now moment) time.Time {
	var wait time.Duration
	age := s.age(now)
	switch {
	case s.facts.Over:
		wait = againAfter // the sweep is about to end the lease
	case s.record == nil && (m.held(s) == nil || age >= m.cfg.StaleAfter):
		return time.Time{}
	case age < m.cfg.StaleAfter:
		wait = m.cfg.StaleAfter - age
	case age <= m.cfg.DeadAfter:
		wait = m.cfg.DeadAfter - age + aMoment
	case m.beaten(s, now):
		wait = m.cfg.StaleAfter - s.facts.Unbeaten - now.Sub(s.facts.at)
	default:
		return time.Time{}
	}
	return now.Add(max(wait, aMoment))
}

// isHung reports whether a command pulses though its lease expired for want of beats.
func (m *Monitor) isHung(s *subject, now moment) bool {
	return m.isZombie(s, now) && s.ended == ended{s.lastFence(), rules.OutcomeExpired}
}

// isZombie reports whether a command pulses though its lease is over. A fence that the store never gave out is nobody's.
func (m *Monitor) isZombie(s *subject, now moment) bool {
	if s.record == nil || !s.facts.known || s.facts.Over || s.lastFence() == 0 || s.facts.Fence < s.lastFence() {
		return false
	}
	live := s.facts.Held != nil && s.facts.Held.Turn.Fence == s.lastFence()
	return !live && s.age(now) < m.cfg.StaleAfter
}

// lastFence is that of the lease which the sentinel speaks for, or last spoke for: without a fence of its own, the job's last.
func (s *subject) lastFence() int64 {
	if s.fence() != 0 {
		return s.fence()
	}
	return s.facts.Fence
}
