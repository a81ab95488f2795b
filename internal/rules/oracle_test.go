package rules

import (
	"errors"
	"reflect"
	"time"

	"lessor"
)

// oracle knows, on the true clock, how long each lease was promised to live, and checks what the rules do against it.
// It knows of no Instant that the rules computed, but those on which the clock that stepped is the judge.
type oracle struct {
	*machine
	floor   time.Duration // when the floor moved last
	stepped time.Duration // when the clock last made a step back too small to be noticed
	// jumped is how far the clock stepped forward since the last sweep: leases may end that much later.
	jumped time.Duration
}

// promise is what one lease was promised, on the true clock.
type promise struct {
	ttl     time.Duration
	least   time.Duration // not lapsed before
	most    time.Duration // lapsed from then on, if no floor or watch holds it
	issued  time.Duration
	granted time.Duration // the same, whatever steps the clock made since
	beatAt  time.Duration // it lived then
	watched time.Duration
	fence   int64
}

func (o *oracle) granted(j *job, h *Held) {
	if j.place == Leased {
		o.Fatalf("job %s is granted and has a live lease", j.spec.ID)
	}
	if h.Turn.Fence <= j.promise.fence {
		o.Fatalf("fence %d of job %s does not rise over %d", h.Turn.Fence, j.spec.ID, j.promise.fence)
	}
	j.grants++
	j.promise = promise{
		ttl: h.TTL, least: o.mono + h.TTL, most: o.mono + h.TTL, issued: o.mono, granted: o.mono,
		fence: h.Turn.Fence,
	}
}

func (o *oracle) beat(j *job, ttl time.Duration) {
	p := &j.promise
	p.most = max(p.most, o.floor+p.ttl) // what the floor promised stays
	if ttl != 0 {
		p.ttl = ttl
	}
	p.beatAt = o.mono
	p.least = max(p.least, o.mono+p.ttl)
	p.most = max(p.most, o.mono+p.ttl)
}

// end is when a lease must be over, at the latest.
func (o *oracle) end(j *job) time.Duration {
	p := &j.promise
	held := max(o.floor+p.ttl, p.watched)
	end := max(p.most, held)
	if j.spec.MaxRuntime != 0 {
		end = min(end, max(p.issued+j.spec.MaxRuntime, held, p.beatAt)) // a shorter ttl may end it at once
	}
	return end
}

// mayTouch checks the answer to a call on a lease, and reports whether it was let through.
func (o *oracle) mayTouch(l issued, worker string, h *Held, err error) bool {
	if err == nil {
		switch {
		case l.job.held == nil || l.job.held.ID != l.id:
			o.Fatalf("a call on lease %s was accepted, but the lease is gone", l.id)
		case worker != l.worker:
			o.Fatalf("a call of %s on the lease of %s was accepted", worker, l.worker)
		case o.mono >= o.end(l.job):
			o.Fatalf("a call on lease %s was accepted %v after its end", l.id, o.mono-o.end(l.job))
		}
		return true
	}
	if h != nil && !reflect.DeepEqual(h, l.job.held) {
		o.Fatalf("a refused call changed the lease from %+v to %+v", l.job.held, h)
	}
	if h != nil && o.mono < o.least(l.job) && (worker == l.worker || !errors.Is(err, lessor.ErrWorkerMismatch)) {
		o.Fatalf("a call of %s on the lease of %s was refused %v before its end: %v", worker, l.worker,
			o.least(l.job)-o.mono, err)
	}
	return false
}

// least is until when a lease is promised to live, its running time included.
func (o *oracle) least(j *job) time.Duration {
	if j.spec.MaxRuntime != 0 && o.spent(j) {
		return min(j.promise.least, o.floor+j.promise.ttl)
	}
	return j.promise.least
}

// spent reports whether the running time of a job is used up: by the clock, or in truth.
func (o *oracle) spent(j *job) bool {
	from := j.held.IssuedAt
	if before(from, o.wall) {
		from = o.serving.Since
	}
	return o.wall >= from.Add(j.spec.MaxRuntime) || o.mono >= j.promise.granted+j.spec.MaxRuntime
}

// lapsed checks that a lease which the sweep ends was not ended early, and without the brake not late.
func (o *oracle) lapsed(j *job, e End) {
	p := &j.promise
	switch {
	case e.Outcome == OutcomeExpired && o.mono < p.least:
		o.Fatalf("the lease of job %s expired %v early", j.spec.ID, p.least-o.mono)
	case e.Outcome == OutcomeFailed && !o.spent(j):
		o.Fatalf("the lease of job %s was ended %v before its running time was used up", j.spec.ID,
			j.held.IssuedAt.Add(j.spec.MaxRuntime).Sub(o.wall))
	case o.mono < o.floor+p.ttl:
		o.Fatalf("the lease of job %s was ended %v before the floor allows", j.spec.ID, o.floor+p.ttl-o.mono)
	case o.wall < j.held.WatchUntil:
		o.Fatalf("the lease of job %s was ended while it is watched", j.spec.ID)
	case !o.brakes() && o.mono-o.end(j) > 2*time.Second+o.jumped:
		o.Fatalf("the lease of job %s was ended %v late", j.spec.ID, o.mono-o.end(j))
	}
}

func (o *oracle) brakes() bool { return o.brake.Min < 1000 }

// braked notes that the floor moved to now by the brake.
func (o *oracle) braked(allowed int) {
	if allowed != 0 {
		o.Fatalf("the brake was pulled and %d leases may be ended", allowed)
	}
	o.moved(0)
}

// moved notes that the floor moved to now, after the clock made a step that everybody noticed, or none.
func (o *oracle) moved(step time.Duration) {
	o.shift(step)
	o.floor = o.mono
	for _, j := range o.jobs {
		p := &j.promise
		if step != 0 {
			p.least = 0 // an end on the old clock means nothing on the new
		}
		p.least = max(p.least, o.mono+p.ttl)
	}
}

// shift moves what is kept on the store's clock when that makes a step.
func (o *oracle) shift(step time.Duration) {
	o.floor -= step
	o.jumped += max(0, step)
	for _, j := range o.jobs {
		p := &j.promise
		p.most -= step
		p.issued -= step
		p.watched -= step
		p.least -= max(0, step) // a step back makes it later, which no promise forbids
	}
}

// gap is time in which no node serves; restarted says that the process which served is another one after it.
func (m *machine) gap(d time.Duration, restarted bool) {
	m.elapse(d)
	if restarted {
		m.serving, m.last = Serving{}, ClockReading{}
	}
	if restarted || d > maxGap {
		m.oracle.moved(0)
	}
	m.settle()
}

// step sets the store's clock forward or back while true time stands still.
func (m *machine) step(d time.Duration) {
	if d < 0 && d >= -maxGap {
		if m.mono-m.oracle.stepped < time.Second {
			return // steps back that come faster than time passes add up unnoticed
		}
		m.oracle.stepped = m.mono
	}
	m.wall = m.wall.Add(d)
	if d.Abs() > maxGap {
		m.oracle.moved(d)
	} else {
		m.oracle.shift(d)
	}
	m.settle()
}
