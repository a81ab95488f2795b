package main

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// alter cancels or retries a job.
func (c *client) alter(j *knownJob) {
	b, sent := c.world.known, c.world.now
	if c.chance(50) {
		final := j.final
		j.retried = true
		err := c.do("retry", func(ctx context.Context, n *node) error {
			_, err := n.Retry(ctx, c.caller, j.id)
			return err
		})
		if err == nil && final == lessor.Completed && !b.stale(sent) {
			b.fail("P4", "job %v was completed and could be retried", j.id)
		}
		return
	}
	force := c.chance(40)
	if force {
		b.tried[act{j.id.UUID, rules.ReasonForced}] = true
	}
	job, err := call(c, "cancel", func(ctx context.Context, n *node) (lessor.Job, error) {
		return n.Cancel(ctx, c.caller, j.id, force)
	})
	if err != nil || b.stale(sent) {
		return
	}
	if force && job.State != lessor.Cancelled && job.State != lessor.Completed {
		b.fail("P4", "a forced cancel left job %v %s", j.id, job.State)
	}
	if job.State == lessor.Cancelled && j.final == "" && !j.retried {
		j.final, j.finalAt = lessor.Cancelled, b.now
		b.open--
	}
}

// read asks what became of a job: what is final stays so (P1), and attempts are bounded (P9).
func (c *client) read(j *knownJob) {
	b, sent, final := c.world.known, c.world.now, j.final
	switch {
	case c.chance(30):
		err := c.do("why", func(ctx context.Context, n *node) error {
			_, err := n.Why(ctx, c.caller, j.id)
			return err
		})
		b.found(j, err, sent)
		return
	case c.chance(20):
		c.spy(j)
		return
	case c.chance(25):
		c.readOutput(j)
		return
	}
	if c.chance(10) {
		c.readJournal(j, sent)
		return
	}
	wait := new(c.random.Int64N(2) * c.random.Int64N(1500))
	job, err := call(c, "job", func(ctx context.Context, n *node) (lessor.Job, error) {
		return n.AwaitJob(ctx, c.caller, j.id, wait)
	})
	b.found(j, err, sent)
	if err != nil || b.stale(sent) || j.retried {
		return
	}
	if final != "" && job.State != final {
		b.fail("P1", "job %v was %s and is %s", j.id, final, job.State)
	}
	if job.Attempt > job.MaxAttempts {
		b.fail("P9", "job %v has %d attempts of %d", j.id, job.Attempt, job.MaxAttempts)
	}
}

// found checks that a job that was acknowledged is there (P1).
func (b *knowledge) found(j *knownJob, err error, sent time.Duration) {
	if lessor.CodeOf(err) == lessor.CodeJobNotFound && !j.lost && !b.stale(sent) && b.config.Retention.Audit == 0 {
		b.fail("P1", "job %v was acknowledged and is not found", j.id)
	}
}

// spy reads and cancels a job with the token of another tenant (P14).
func (c *client) spy(j *knownJob) {
	other := tenant(1)
	if j.tenant == other {
		other = tenant(2)
	}
	as := scheduler.Caller{Actor: "spy", Tenant: &other}
	for _, verb := range []func(ctx context.Context, n *node) error{
		func(ctx context.Context, n *node) error {
			_, err := n.Job(ctx, as, j.id)
			return err
		},
		func(ctx context.Context, n *node) error {
			_, err := n.Cancel(ctx, as, j.id, true)
			return err
		},
	} {
		if c.do("spy", verb) == nil {
			c.world.fail("P14", "tenant %v reaches job %v of tenant %v", other, j.id, j.tenant)
		}
	}
}
