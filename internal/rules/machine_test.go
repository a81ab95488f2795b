package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"lessor"
)

// machine is one store in memory: it applies rules exactly as the scheduler does, to jobs in a world where time passes,
// service stops and the clock steps. Beside it an oracle keeps its own books of what each lease was promised.
type machine struct {
	*rapid.T
	wall    lessor.Instant
	mono    time.Duration // true time, which no step of the clock touches
	last    ClockReading
	serving Serving
	swept   time.Duration
	brake   BrakeConfig
	retries Retries

	jobs   []*job
	leases []issued
	oracle oracle
}

// job is all rows of one job.
type job struct {
	spec     *Spec
	place    Place
	turn     Turn
	wait     Wait
	held     *Held
	done     *Done
	attempts []Attempt
	notes    []Note
	asked    *lessor.Question

	published []lessor.Event // what followers of the records got
	record    []lessor.Event // as it was at the last look
	changed   bool           // since the last look
	promise   promise
	grants    int
	returned  int // grants that were given back
	retried   int // by operators
}

// issued is a lease that was handed out once; it may be over.
type issued struct {
	job    *job
	id     lessor.LeaseID
	worker string
}

const machineTTL = 5 * time.Second

func newMachine(t *rapid.T) *machine {
	m := &machine{
		T: t, wall: start, mono: time.Hour,
		brake:   BrakeConfig{SharePercent: 30, Min: 4, Rate: 2, TTL: machineTTL},
		retries: Retries{BackoffFirst: time.Second, BackoffMax: 4 * time.Second, MaxInterruptions: 2},
	}
	m.oracle = oracle{machine: m, floor: m.mono}
	m.serve()
	return m
}

func (m *machine) number(label string, least, most int) int {
	return rapid.IntRange(least, most).Draw(m.T, label)
}

func (m *machine) chance(label string, percent int) bool {
	return m.number(label, 0, 99) >= 100-percent
}

func (m *machine) millis(label string, least, most time.Duration) time.Duration {
	return time.Duration(m.number(label, int(least.Milliseconds()), int(most.Milliseconds()))) * time.Millisecond
}

// serve is the first act of every transaction.
func (m *machine) serve() {
	now := ClockReading{Wall: m.wall, Mono: m.mono}
	m.serving = Serve(m.serving, m.last, now)
	m.last = now
}

// pass lets time go by in service: a sign of it every quarter of a second, a sweep every second.
func (m *machine) pass(d time.Duration) {
	for end := m.mono + d; m.mono < end; {
		m.elapse(min(250*time.Millisecond, end-m.mono))
		m.settle()
	}
}

func (m *machine) elapse(d time.Duration) {
	m.wall = m.wall.Add(d)
	m.mono += d
}

// settle serves again, and sweeps if it is time.
func (m *machine) settle() {
	m.serve()
	if m.mono-m.swept >= time.Second {
		m.sweep()
		m.promote()
		m.oracle.jumped = 0
	}
}

// find returns a job that is in one of the places, nil if there is none.
func (m *machine) find(places ...Place) *job {
	var fit []*job
	for _, j := range m.jobs {
		if slices.Contains(places, j.place) {
			fit = append(fit, j)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[m.number("job", 0, len(fit)-1)]
}

// standing returns a job as a store loads it.
func (j *job) standing() *Standing {
	st := &Standing{
		Spec: j.spec, Place: j.place, Turn: j.turn, Wait: j.wait, Done: j.done,
		Report: &Report{Question: j.asked},
	}
	switch j.place {
	case Leased:
		h := *j.held
		st.Held, st.Turn = &h, h.Turn
	case Ended:
		st.Turn = j.done.Attempt.Turn
	case Nowhere, InQueue, Delayed:
	}
	return st
}

// load returns a copy of a live lease row, nil if the lease is gone.
func (l issued) load() *Held {
	if l.job.held == nil || l.job.held.ID != l.id {
		return nil
	}
	h := *l.job.held
	return &h
}

// publish hands an entry to the followers, with the trace id that the scheduler adds at the end of a pass.
func (j *job) publish(e lessor.Event) {
	e.TraceID = j.spec.TraceID
	j.published = append(j.published, e)
}

// move takes a job's row from one place to another, as Store.Move does.
func (m *machine) move(j *job, from Place, n Next, held *Held) {
	if j.place != from {
		m.Fatalf("a move takes job %s from place %d, but it is in %d", j.spec.ID, from, j.place)
	}
	if n.Attempt != nil {
		j.attempts = append(j.attempts, *n.Attempt)
	}
	j.place, j.turn, j.wait, j.done, j.held, j.changed = n.Place, n.Turn, n.Wait, n.Done, held, true
}

func (m *machine) submit() {
	if len(m.jobs) == 12 {
		return
	}
	id := jobID(byte(len(m.jobs) + 1))
	s := &Spec{
		ID: id, Lane: Lane{Class: defaultClass, Type: "generic", Units: 1}, Payload: json.RawMessage(`{}`),
		Seq:         int64(len(m.jobs)),
		MaxAttempts: m.number("max attempts", 1, 4), TraceID: fmt.Sprintf("trace %d", len(m.jobs)), Actor: "anna",
		CreatedAt:    m.wall,
		BackoffFirst: m.retries.BackoffFirst, BackoffMax: m.retries.BackoffMax,
	}
	if m.chance("limited running time", 20) {
		s.MaxRuntime = m.millis("max runtime", time.Second, 20*time.Second)
	}
	t := Turn{Job: id, Seq: s.Seq, MaxAttempts: s.MaxAttempts, Steps: 1, QueuedAt: m.wall}
	j := &job{spec: s}
	m.jobs = append(m.jobs, j)
	j.publish(Submitted(s))
	if m.chance("later", 20) {
		s.RunAt = m.wall.Add(m.millis("run at", time.Millisecond, 10*time.Second))
		m.move(j, Nowhere, Next{Place: Delayed, Turn: t, Wait: Wait{Until: s.RunAt, State: lessor.Queued}}, nil)
		return
	}
	m.move(j, Nowhere, Next{Place: InQueue, Turn: t}, nil)
}

func (m *machine) grant() {
	j := m.find(InQueue)
	if j == nil {
		return
	}
	l := issued{job: j, id: lessor.LeaseID{UUID: lessor.UUID{
		0: 2, 8: byte(len(m.leases) >> 8),
		9: byte(len(m.leases)),
	}}}
	l.worker = fmt.Sprintf("w%d", m.number("worker", 1, 4))
	ttl := machineTTL
	if m.chance("own ttl", 30) {
		ttl = m.millis("ttl", 100*time.Millisecond, 15*time.Second)
	}
	h := Grant(l.id, j.turn, j.spec, l.worker, ttl, m.wall)
	m.oracle.granted(j, h)
	m.move(j, InQueue, Next{Place: Leased}, h)
	m.leases = append(m.leases, l)
	j.publish(Granted(h))
}

// call picks a lease, live or over, and a worker, mostly the right one.
func (m *machine) call() (issued, string, bool) {
	if len(m.leases) == 0 {
		return issued{}, "", false
	}
	l := m.leases[len(m.leases)-1-m.number("lease back", 0, min(9, len(m.leases)-1))]
	if m.chance("another worker", 10) {
		return l, "stranger", true
	}
	return l, l.worker, true
}

func (m *machine) beat() {
	l, worker, ok := m.call()
	if !ok {
		return
	}
	var ttl time.Duration
	if m.chance("another ttl", 20) {
		ttl = m.millis("ttl", 100*time.Millisecond, 15*time.Second)
	}
	h := l.load()
	first := h != nil && h.FirstBeatAt == 0
	if err := Beat(h, by(worker), ttl, m.wall, m.serving); !m.oracle.mayTouch(l, worker, h, err) {
		return
	}
	l.job.held, l.job.changed = h, true
	m.oracle.beat(l.job, ttl)
	if first {
		l.job.publish(Began(h))
	}
}

// end is a worker's last word, or an operator's revoke.
func (m *machine) end() {
	l, worker, ok := m.call()
	if !ok {
		return
	}
	e := ends[rapid.SampledFrom([]string{
		"failed", "completed", "released", "failed", "released", "obeyed",
		"failed for good", "revoked", "asked",
	}).Draw(m.T, "end")]
	if e.Outcome == OutcomeReleased && m.chance("delayed", 40) {
		e.Delay = m.millis("delay", time.Millisecond, 5*time.Second)
	}
	if e.Said == SaidNothing {
		worker = l.worker // the worker that holds it
	}
	h := l.load()
	if err := Touch(h, by(worker), m.wall, m.serving); !m.oracle.mayTouch(l, worker, h, err) {
		return
	}
	next, err := Conclude(h, e, m.retries, m.wall, rapid.Float64Range(0, 0.999).Draw(m.T, "random"))
	if err != nil {
		if e.Said != SaidCancelled || h.CancelAt != 0 {
			m.Fatalf("an end as %s was refused: %v", e.Outcome, err)
		}
		return
	}
	if next.Wait.State == lessor.Waiting {
		l.job.asked = Asked(h, e, m.wall)
	}
	m.leave(l.job, h, next)
}

// leave takes a job from its lease to where it goes next.
func (m *machine) leave(j *job, h *Held, n Next) {
	m.move(j, Leased, n, nil)
	j.publish(Concluded(h, n))
	if n.Attempt != nil && (n.Attempt.Outcome == OutcomeReleased || n.Attempt.Outcome == OutcomeWaiting) {
		j.returned++
	}
}

// alter applies an operator's wish, as the scheduler's apply does.
func (m *machine) alter(j *job, decide func(*Standing) (Change, error)) {
	st := j.standing()
	ch, err := decide(st)
	if err != nil {
		return
	}
	steps := st.Turn.Steps
	if st.Held != nil {
		steps = st.Held.Steps() - len(ch.Notes)
	}
	for i, n := range ch.Notes {
		j.publish(n.Event(steps+i+1, n.From, ""))
	}
	j.notes = append(j.notes, ch.Notes...)
	j.changed = true
	if ch.CancelLease {
		j.held = st.Held
	}
	switch {
	case ch.Next == nil:
	case st.Place == Leased:
		m.leave(j, st.Held, *ch.Next)
	default:
		m.move(j, st.Place, *ch.Next, nil)
	}
}

func (m *machine) cancel() {
	if j := m.find(InQueue, Delayed, Leased, Ended); j != nil {
		force := m.chance("force", 30)
		m.alter(j, func(s *Standing) (Change, error) { return Cancel(s, force, "olga", m.wall) })
	}
}

// answer answers the last question of a job, which may have another answer already.
func (m *machine) answer() {
	j := m.find(Delayed)
	if j == nil || j.asked == nil {
		return
	}
	a := lessor.Answer{QuestionID: new(j.asked.ID.String()), Answer: new("no")}
	m.alter(j, func(s *Standing) (Change, error) {
		ch, err := Answer(s, &a, "olga", m.wall)
		if ch.Question != nil {
			j.asked = ch.Question
		}
		return ch, err
	})
}

func (m *machine) retry() {
	if j := m.find(Delayed, Ended, Delayed); j != nil {
		m.alter(j, func(s *Standing) (Change, error) {
			ch, err := Retry(s, "olga", m.wall)
			if err == nil && s.Place == Ended {
				j.retried++
			}
			return ch, err
		})
	}
}

func (m *machine) watch() {
	j := m.find(Leased)
	if j == nil || Over(j.held, m.wall, m.serving) != "" {
		return
	}
	d := m.millis("watch", 0, 10*time.Second)
	j.held.WatchUntil = m.wall.Add(d)
	j.promise.watched = m.mono + d
}

// promote puts waiting jobs whose time has come into the queue.
func (m *machine) promote() {
	for _, j := range m.jobs {
		if j.place != Delayed || j.wait.Until > m.wall {
			continue
		}
		w := j.wait
		t := Promote(j.turn, w, m.wall)
		m.move(j, Delayed, Next{Place: InQueue, Turn: t}, nil)
		if e, ok := CameDue(t, w); ok {
			j.publish(e)
		}
	}
}

// sweep ends leases that are over, as many as the brake allows.
func (m *machine) sweep() {
	elapsed := m.mono - m.swept
	m.swept = m.mono
	var lapsed []*job
	for _, j := range m.jobs {
		if j.place != Leased {
			continue
		}
		switch Over(j.held, m.wall, m.serving) {
		case OutcomeFailed:
			m.lapse(j)
		case OutcomeExpired:
			lapsed = append(lapsed, j)
		}
	}
	if len(lapsed) == 0 {
		return
	}
	var silence Silence
	for _, j := range m.jobs {
		if j.place == Leased {
			silence.Count(j.held, m.wall, m.serving)
		}
	}
	next, allowed, pulled := Brake(silence, m.serving, m.wall, elapsed, m.brake)
	m.serving = next
	if pulled {
		m.oracle.braked(allowed)
	}
	for _, j := range lapsed[:min(allowed, len(lapsed))] {
		m.lapse(j)
	}
}

func (m *machine) lapse(j *job) {
	h := j.held
	e := Lapse(Over(h, m.wall, m.serving))
	m.oracle.lapsed(j, e)
	next, err := Conclude(h, e, m.retries, m.wall, rapid.Float64Range(0, 0.999).Draw(m.T, "random"))
	if err != nil {
		m.Fatalf("a lapse was refused: %v", err)
	}
	m.leave(j, h, next)
}
