package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// What jobs are drawn from. New lanes appear all the time: a type or a lock key makes some.
var (
	jobTypes   = []string{"mail", "report", "index", "video"}
	priorities = []string{"high", "normal", "low", "background"}
	classes    = []string{"default", "bulk", "fast"}
)

// people adds all tasks that act: submitters, workers, an operator, a reader, and the faults.
func (w *world) people() {
	w.tempo = time.Duration(w.plan.Workers)*700*time.Millisecond + time.Second
	for i := range 1 + w.plan.Nodes/2 {
		w.spawn(fmt.Sprintf("submitter-%d", i), nil, w.submitter)
	}
	for i := range w.plan.Workers {
		w.spawn(fmt.Sprintf("worker-%d", i), nil, func(t *task) { w.work(t, i) })
	}
	w.spawn("tide", nil, w.alternateTraffic)
	w.spawn("operator", nil, w.operate)
	w.spawn("person", nil, w.talk)
	w.spawn("vandal", nil, w.sendBadBodies)
	w.spawn("monitor", nil, w.watch)
	w.spawn("patrol", nil, w.checkRegularly)
	w.spawn("evil", nil, w.causeFaults)
}

// tenant returns the id of the i-th tenant; 0 is the tenant of jobs without one.
func tenant(i int) (id lessor.TenantID) {
	if i > 0 {
		binary.BigEndian.PutUint64(id.UUID[8:], uint64(i))
		id.UUID[6], id.UUID[8] = 0x40, 0x80
	}
	return id
}

// callerOf is the identity of the i-th worker: every third with a token of a tenant, every third with one of none.
func (w *world) callerOf(i int) scheduler.Caller {
	c := scheduler.Caller{Actor: "sim"}
	switch i % 3 {
	case 1:
		c.Tenant = new(tenant(1 + i%w.plan.Tenants))
		fallthrough
	case 2:
		c.Actor, c.Worker = fmt.Sprintf("token-%d", i), true
		binary.BigEndian.PutUint64(c.Token.UUID[:8], uint64(i+1))
	}
	return c
}

// submitter submits jobs, and asks what became of them.
func (w *world) submitter(t *task) {
	s := w.client(t, scheduler.Caller{Actor: "submitter"})
	var mine []*knownJob
	for !w.quiet {
		if w.known.open > 20+6*w.plan.Workers { // the workers are behind
			s.sleep(2 * w.tempo)
			w.known.recount()
			continue
		}
		switch {
		case s.chance(15):
			mine = append(mine, s.submit(1+s.random.IntN(6))...)
		case s.chance(50) || len(mine) == 0:
			mine = append(mine, s.submit(0)...)
		case s.chance(50):
			s.alter(mine[s.random.IntN(len(mine))])
		default:
			s.read(mine[max(0, len(mine)-1-s.random.IntN(60))])
		}
		s.rest(time.Duration(s.random.ExpFloat64() * float64(w.tempo) / 4))
	}
}

// submission draws a job.
func (c *client) submission(sub *knownSubmission) lessor.Submission {
	w := c.world
	b := lessor.Submission{
		Type:    new(jobTypes[c.random.IntN(len(jobTypes))]),
		Payload: fmt.Appendf(nil, `{"n":%d}`, sub.number), MaxAttempts: new(int64(1 + c.random.IntN(4))),
		RequestedUnits: new(int64(1 + c.random.IntN(min(4, w.fit())))),
	}
	if t := tenant(c.random.IntN(w.plan.Tenants + 1)); !t.IsZero() {
		b.TenantID = new(t.String())
	}
	if c.chance(30) {
		b.Priority = &priorities[c.random.IntN(len(priorities))]
	}
	if c.chance(30) {
		b.FairnessClass = &classes[c.random.IntN(len(classes))]
	}
	if c.chance(10) {
		b.Type = new(fmt.Sprintf("type-%d", c.random.IntN(200)))
	}
	if c.chance(10) {
		b.Unique = new(true)
	}
	if c.chance(15) {
		b.LockKey = new(fmt.Sprintf("lock-%d", c.random.IntN(5)))
	}
	if c.chance(15) {
		due := w.clock().Add(time.Duration(c.random.ExpFloat64() * float64(time.Minute)))
		b.RunAt = new(due.Time().Format(time.RFC3339Nano))
	} else if c.chance(10) {
		b.DelayMS = new(int64(c.random.IntN(60_000)))
	}
	if c.chance(10) {
		b.MaxRuntimeS = new(int64(1 + c.random.IntN(60)))
	}
	if c.chance(10) {
		b.Backoff = &lessor.BackoffAsk{FirstMS: new(int64(100)), MaxMS: new(int64(5000))}
		if c.chance(30) {
			b.Backoff.FirstMS = nil
		}
	}
	if c.chance(5) {
		b.RequestedUnits = new(int64(w.fit()))
	}
	if c.chance(30) {
		sub.key = fmt.Sprintf("key-%d", sub.number)
		b.IdempotencyKey = &sub.key
	}
	return b
}

// fit is the largest job that can ever run.
func (w *world) fit() int { return w.config.TotalUnits - w.config.ReserveUnits }

// submit submits a batch of n jobs, or one job if n is 0. If the outcome is unknown it submits them again, as far
// as keys make that safe, and sometimes also if they were stored.
func (c *client) submit(n int) (jobs []*knownJob) {
	b, keyed := c.world.known, true
	subs, bodies := make([]*knownSubmission, max(1, n)), make([]lessor.Submission, max(1, n))
	for i := range subs {
		subs[i] = &knownSubmission{number: len(b.subs)}
		b.subs = append(b.subs, subs[i])
		bodies[i] = c.submission(subs[i])
		keyed = keyed && subs[i].key != ""
	}
	for range 4 {
		sent := c.world.now
		all, err := call(c, "submit", func(ctx context.Context, to *node) ([]scheduler.Submitted, error) {
			for _, sub := range subs {
				sub.maybes++ // until the answer arrives; the network may deliver it twice
			}
			if n == 0 {
				one, err := to.Submit(ctx, c.caller, bodies[0])
				return []scheduler.Submitted{one}, err
			}
			return to.SubmitBatch(ctx, c.caller, bodies)
		})
		for i, sub := range subs {
			r := scheduler.Submitted{}
			if err == nil {
				r = all[i]
			}
			if b.submitted(sub, &r, err, sent); err == nil && !b.stale(sent) {
				jobs = append(jobs, b.jobs[r.Job.ID])
			}
		}
		if !keyed || err == nil && !c.chance(10) {
			return jobs
		}
		c.sleep(time.Second)
	}
	return jobs
}
