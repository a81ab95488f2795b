package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// What jobs are of. New lanes appear all the time: a lock key and a type each make some.
var (
	jobTypes   = []string{"mail", "report", "index", "video"}
	priorities = []string{"high", "normal", "low", "background"}
	classes    = []string{"default", "bulk", "fast"}
)

// people adds everybody who acts: submitters, workers, an operator, somebody who looks, and the faults.
func (w *world) people() {
	w.tempo = time.Duration(w.plan.Workers)*700*time.Millisecond + time.Second
	for i := range 1 + w.plan.Nodes/2 {
		w.spawn(fmt.Sprintf("submitter-%d", i), nil, w.submitter)
	}
	for i := range w.plan.Workers {
		w.spawn(fmt.Sprintf("worker-%d", i), nil, func(t *task) { w.work(t, i) })
	}
	w.spawn("operator", nil, w.operate)
	w.spawn("patrol", nil, w.patrol)
	w.spawn("evil", nil, w.evil)
}

// tenant returns the id of the i-th tenant; 0 is the tenant of jobs without one.
func tenant(i int) (id lessor.TenantID) {
	if i > 0 {
		binary.BigEndian.PutUint64(id.UUID[8:], uint64(i))
		id.UUID[6], id.UUID[8] = 0x40, 0x80
	}
	return id
}

// callerOf is as whom the i-th worker calls: every third with a token of a tenant, every third with one of none.
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
	var mine []*jobBook
	for !w.quiet {
		if w.books.open > 20+6*w.plan.Workers { // the workers are behind
			s.sleep(2 * w.tempo)
			w.books.recount()
			continue
		}
		switch {
		case s.chance(15):
			mine = append(mine, s.submit(1+s.random.IntN(6))...)
		case s.chance(70) || len(mine) == 0:
			mine = append(mine, s.submit(0)...)
		case s.chance(50):
			s.alter(mine[s.random.IntN(len(mine))])
		default:
			s.read(mine[s.random.IntN(len(mine))])
		}
		s.sleep(time.Duration(s.random.ExpFloat64() * float64(w.tempo) / 4))
	}
}

// submission draws a job.
func (s *client) submission(sub *subBook) lessor.Submission {
	w := s.world
	b := lessor.Submission{
		Type:    new(jobTypes[s.random.IntN(len(jobTypes))]),
		Payload: fmt.Appendf(nil, `{"n":%d}`, sub.number), MaxAttempts: new(int64(1 + s.random.IntN(4))),
		RequestedUnits: new(int64(1 + s.random.IntN(min(4, w.fit())))),
	}
	if t := tenant(s.random.IntN(w.plan.Tenants + 1)); !t.IsZero() {
		b.TenantID = new(t.String())
	}
	if s.chance(30) {
		b.Priority = &priorities[s.random.IntN(len(priorities))]
	}
	if s.chance(30) {
		b.FairnessClass = &classes[s.random.IntN(len(classes))]
	}
	if s.chance(10) {
		b.Type = new(fmt.Sprintf("type-%d", s.random.IntN(200)))
	}
	if s.chance(10) {
		b.Unique = new(true)
	}
	if s.chance(15) {
		b.LockKey = new(fmt.Sprintf("lock-%d", s.random.IntN(5)))
	}
	if s.chance(15) {
		due := w.clock().Add(time.Duration(s.random.ExpFloat64() * float64(time.Minute)))
		b.RunAt = new(due.Time().Format(time.RFC3339Nano))
	} else if s.chance(10) {
		b.DelayMS = new(int64(s.random.IntN(60_000)))
	}
	if s.chance(10) {
		b.MaxRuntimeS = new(int64(1 + s.random.IntN(60)))
	}
	if s.chance(10) {
		b.Backoff = &lessor.BackoffAsk{FirstMS: new(int64(100)), MaxMS: new(int64(5000))}
	}
	if s.chance(5) {
		b.RequestedUnits = new(int64(w.fit()))
	}
	if s.chance(30) {
		sub.key = fmt.Sprintf("key-%d", sub.number)
		b.IdempotencyKey = &sub.key
	}
	return b
}

// fit is the largest job that can ever run.
func (w *world) fit() int { return w.config.TotalUnits - w.config.ReserveUnits }

// submit submits a batch of n jobs, or one job if n is 0. If nobody knows whether they were stored it submits them
// again, as far as keys make that safe, and now and then also if they were.
func (s *client) submit(n int) (jobs []*jobBook) {
	b, keyed := s.world.books, true
	subs, bodies := make([]*subBook, max(1, n)), make([]lessor.Submission, max(1, n))
	for i := range subs {
		subs[i] = &subBook{number: len(b.subs)}
		b.subs = append(b.subs, subs[i])
		bodies[i] = s.submission(subs[i])
		keyed = keyed && subs[i].key != ""
	}
	for range 4 {
		sent := s.world.now
		all, err := call(s, "submit", func(ctx context.Context, to *node) ([]scheduler.Submitted, error) {
			for _, sub := range subs {
				sub.maybes++ // until the answer is heard; the network may deliver it twice
			}
			if n == 0 {
				one, err := to.Submit(ctx, s.caller, bodies[0])
				return []scheduler.Submitted{one}, err
			}
			return to.SubmitBatch(ctx, s.caller, bodies)
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
		if !keyed || err == nil && !s.chance(10) {
			return jobs
		}
		s.sleep(time.Second)
	}
	return jobs
}
