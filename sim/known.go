package main

import (
	"errors"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// knowledge is what callers know from answers alone. The tables and later answers are compared with it.
type knowledge struct {
	*world
	subs   []*knownSubmission
	jobs   map[lessor.JobID]*knownJob
	keys   map[scheduler.Key]*knownJob
	leases map[lessor.LeaseID]*knownLease

	answers map[lessor.QuestionID]string // to questions
	ticks   map[tickOf]lessor.JobID      // also of jobs that are gone

	tried    map[act]bool                  // what operators tried
	live     map[lessor.LeaseID]*liveLease // as of the last commit
	servedAt time.Duration                 // until when nodes could commit heartbeats
	floor    time.Duration                 // when that began again after a gap; in true time, and at the latest
	gapAt    time.Duration                 // when that gap began
	// servedClock is what the database's clock said at servedAt. It may have hidden the gap.
	servedClock lessor.Instant
	gapHidden   bool
	backAt      time.Duration // when the database last went back; 0 = never
	setAt       time.Duration // when its clock was last set; -1 = never
	sets        int           // how often it was set
	open        int           // jobs that have not ended, about
	settings    operatorSettings

	waiting       []*wait // requests that nodes hold
	matchesBefore []match // at the last check
	movesBefore   int     // grants and ends until then
}

// knownSubmission is what is known of a submission, which may have been sent several times.
type knownSubmission struct {
	number int
	acks   int // answers that said it was stored
	maybes int // calls that arrived, and of which nobody knows whether they stored it
	copies int // jobs that may continue one that failed for good
	key    string
}

// knownJob is what is known of a job.
type knownJob struct {
	id      lessor.JobID
	tenant  lessor.TenantID
	knownAt time.Duration
	lost    bool // the database went back to before it was known
	fence   int64
	fences  []int64 // of all its leases
	final   lessor.State
	finalAt time.Duration
	retried bool // by an operator, perhaps
	record  []entry
	journal map[string]int // the numbers of entries that were acknowledged, by their keys
	entries []string       // the keys of the journal as it was seen last

	messages     map[int64]sentMessage // those that were acknowledged, by number
	lostMessages map[int64]string      // those acknowledged before the database went back
	confirmed    int64                 // the worker has confirmed so many, and knows it
	doubtful     int64                 // it may have confirmed so many
}

// knownLease is what is known of a lease.
type knownLease struct {
	id        lessor.LeaseID
	job       *knownJob
	fence     int64
	ttl       time.Duration
	least     time.Duration            // the shortest ttl that its worker ever asked for
	grantedAt time.Duration            // when the request was sent
	until     time.Duration            // it may not expire before, in true time; 0 = nothing is known
	watch     time.Duration            // it may not expire before, as a monitor said; 0 = nothing is known
	overAt    time.Duration            // when a caller first learned that it is over; 0 = none has
	how       map[string]time.Duration // when it was first tried to end it so
	lost      bool                     // the database went back to before the grant
	asks      time.Duration            // how long its question waits
	printed   map[string]*printed      // by stream
}

func newKnowledge(w *world) *knowledge {
	return &knowledge{
		world: w, jobs: map[lessor.JobID]*knownJob{}, keys: map[scheduler.Key]*knownJob{},
		leases: map[lessor.LeaseID]*knownLease{}, live: map[lessor.LeaseID]*liveLease{}, tried: map[act]bool{},
		setAt: -1, answers: map[lessor.QuestionID]string{}, ticks: map[tickOf]lessor.JobID{},
	}
}

// stale reports whether the answer to a call that was sent at a moment may be of a history that is no more.
func (b *knowledge) stale(sent time.Duration) bool { return b.backAt != 0 && sent <= b.backAt }

// job returns what is known of a job, and adds a job that is new.
func (b *knowledge) job(id lessor.JobID, tenant lessor.TenantID) *knownJob {
	j := b.jobs[id]
	if j == nil {
		j = &knownJob{id: id, tenant: tenant, knownAt: b.now}
		b.jobs[id] = j
	}
	return j
}

// submitted takes the answer to a submission (P1, P2).
func (b *knowledge) submitted(s *knownSubmission, r *scheduler.Submitted, err error, sent time.Duration) {
	switch {
	case errors.Is(err, errRefused):
		return
	case err != nil && definite(err):
		s.maybes-- // what arrived was refused, and changed nothing
		return
	case err != nil || b.stale(sent):
		return
	}
	s.maybes--
	s.acks++
	j := b.job(r.Job.ID, r.Job.TenantID)
	if s.key != "" {
		k := scheduler.Key{Tenant: r.Job.TenantID, Key: s.key}
		if first := b.keys[k]; first != nil && first.id != r.Job.ID && b.config.Retention.Jobs == 0 {
			b.fail("P2", "key %s gave job %v after job %v", s.key, r.Job.ID, first.id)
		}
		b.keys[k] = j
	}
	if !r.Existing {
		b.open++
		b.mustBe(j, "", "was acknowledged")
	}
}

// mustBe checks that what was acknowledged about a job is in the tables (P1). Jobs leave after their retention.
func (b *knowledge) mustBe(j *knownJob, state lessor.State, what string) {
	b.read(func(v scheduler.View) error {
		all, err := v.Standings(ctx, []lessor.JobID{j.id})
		st := all[j.id]
		if err == nil && (st == nil && b.config.Retention.Audit == 0 || st != nil && state != "" &&
			st.State() != state) {
			b.fail("P1", "job %v %s, and the tables do not have it", j.id, what)
		}
		return err
	})
}

// granted takes a grant (P4, P11, P14).
func (b *knowledge) granted(k *worker, r *lessor.LeaseRequest, g *lessor.Grant, sent time.Duration) *knownLease {
	if t := k.caller.Tenant; t != nil && *t != g.Job.TenantID {
		b.fail("P14", "a worker of tenant %v got a job of tenant %v", *t, g.Job.TenantID)
	}
	if len(r.Types) > 0 && !slices.Contains(r.Types, g.Job.Type) {
		b.fail("P11", "a worker that asks for %v got %s", r.Types, g.Job.Type)
	}
	if r.MaxUnits != nil && int64(g.Lease.CapacityUnits) > *r.MaxUnits {
		b.fail("P11", "a worker that takes %d units got %d", *r.MaxUnits, g.Lease.CapacityUnits)
	}
	if l := b.leases[g.Lease.ID]; l != nil {
		if l.overAt != 0 && sent > l.overAt {
			b.fail("P4", "a repeated request got a lease that is over since %v", l.overAt)
		}
		return l
	}
	j := b.job(g.Job.ID, g.Job.TenantID)
	b.resumed(j, g.Job.Question)
	ttl := time.Duration(g.Lease.TTLMS) * time.Millisecond
	l := &knownLease{
		id: g.Lease.ID, job: j, fence: g.Lease.Fence, ttl: ttl, least: ttl, grantedAt: sent, until: sent + ttl,
		how: map[string]time.Duration{}, lost: b.stale(sent),
	}
	b.leases[l.id] = l
	return l
}

// heartbeatAnswered checks the answer to a heartbeat (P4).
func (b *knowledge) heartbeatAnswered(l *knownLease, a lessor.HeartbeatAnswer, err error, sent time.Duration) {
	switch code := lessor.CodeOf(err); {
	case err == nil:
		if l.overAt != 0 && sent > l.overAt {
			b.fail("P4", "a heartbeat at %v revived lease %v, which was over at %v", sent, l.id, l.overAt)
		}
		if !b.stale(sent) {
			l.ttl = 3 * time.Duration(a.HeartbeatAfterMS) * time.Millisecond
			l.until = max(l.until, sent+l.ttl)
		}
	case code == lessor.CodeLeaseNotFound:
		b.over(l, sent)
	case code == lessor.CodeWorkerMismatch:
		b.fail("P4", "lease %v is another worker's", l.id)
	}
}

// over notes that a caller learned that a lease is over.
func (b *knowledge) over(l *knownLease, sent time.Duration) {
	if l != nil && l.overAt == 0 && !b.stale(sent) {
		l.overAt = b.now
	}
}

// ending notes that a worker is about to end a lease.
func (b *knowledge) ending(l *knownLease, how string) {
	if _, tried := l.how[how]; !tried {
		l.how[how] = b.now
	}
}

// ended takes the answer to a call that ends a lease (P1, P4).
func (b *knowledge) ended(l *knownLease, how string, err error, sent time.Duration) {
	switch code := lessor.CodeOf(err); {
	case code == lessor.CodeLeaseNotFound:
		b.over(l, sent)
		return
	case code == lessor.CodeWorkerMismatch:
		b.fail("P4", "lease %v is another worker's", l.id)
		return
	case err != nil || b.stale(sent):
		return
	}
	if l.overAt != 0 && l.how[how] > l.overAt {
		b.fail("P4", "%s at %v changed lease %v, which was over at %v", how, sent, l.id, l.overAt)
	}
	b.over(l, sent)
	state := map[string]lessor.State{"completed": lessor.Completed, "cancelled": lessor.Cancelled}[how]
	if j := l.job; state != "" && j.final == "" && !j.retried {
		j.final, j.finalAt = state, b.now
		b.mustBe(j, state, "was "+how)
	}
	b.open--
}

// clockSet notes that the database's clock was set: from now on each lease has its ttl again, whatever it had before.
func (b *knowledge) clockSet() {
	b.setAt, b.sets = b.now, b.sets+1
	for _, l := range b.leases {
		l.until, l.watch = min(l.until, b.now+l.least), 0
	}
}

// wentBack forgets what was learned after a moment: the database knows it no more.
func (b *knowledge) wentBack(to time.Duration) {
	b.backAt = b.now
	for _, j := range b.jobs {
		j.lost, j.record, j.journal, j.entries = j.lost || j.knownAt > to, nil, nil, nil
		for seq, m := range j.messages {
			if j.lostMessages == nil {
				j.lostMessages = map[int64]string{}
			}
			j.lostMessages[seq] = m.text
		}
		j.messages, j.confirmed = nil, 0
		if j.finalAt > to {
			j.final, j.finalAt = "", 0
		}
	}
	for _, l := range b.leases {
		l.lost, l.until, l.watch = l.lost || l.grantedAt > to, 0, 0
		for _, p := range l.printed {
			p.acknowledged = nil
		}
		if l.overAt > to {
			l.overAt = 0
		}
	}
	for k, j := range b.keys {
		if j.knownAt > to {
			delete(b.keys, k)
		}
	}
	for _, s := range b.subs {
		s.maybes, s.acks = s.maybes+s.acks, 0
	}
	clear(b.live)
	clear(b.ticks)
	clear(b.answers)
	b.read(func(v scheduler.View) error {
		return v.EachLease(ctx, func(h *rules.Held) error {
			b.begin(h, v.Now())
			return nil
		})
	})
}
