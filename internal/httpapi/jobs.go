package httpapi

import (
	"context"
	"net/http"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

type jobList struct {
	Jobs       []lessor.Job `json:"jobs"`
	NextCursor *string      `json:"next_cursor"`
}

// jobBatch is the body of a batch submission.
type jobBatch struct {
	Jobs []lessor.Submission `json:"jobs"`
	View *string             `json:"view,omitempty"` // lessor.ViewFull, which is the default, or lessor.ViewIDs
}

// submitted is the answer to a batch, in the order of its jobs.
type submitted struct {
	Jobs []lessor.Job `json:"jobs"`
}

// submittedIDs is the answer to a batch with view "ids".
type submittedIDs struct {
	JobIDs []lessor.JobID `json:"job_ids"`
}

func jobsOf(got []scheduler.Submitted) submitted {
	s := submitted{make([]lessor.Job, len(got))}
	for i := range got {
		s.Jobs[i] = got[i].Job
	}
	return s
}

func idsOf(got []scheduler.Submitted) submittedIDs {
	s := submittedIDs{make([]lessor.JobID, len(got))}
	for i := range got {
		s.JobIDs[i] = got[i].Job.ID
	}
	return s
}

type eventList struct {
	Events     []lessor.Event `json:"events"`
	NextCursor *string        `json:"next_cursor"`
}

type cancelBody struct {
	Force *bool `json:"force,omitempty"`
}

// empty is a body without fields.
type empty struct{}

func (c *call) checkOne(s *lessor.Submission) error {
	return c.api.scheduler.CheckSubmission(c.caller, *s)
}

func (c *call) submit(s *lessor.Submission) error {
	if err := c.ownTenant(s.TenantID); err != nil {
		return err
	}
	got, err := c.api.scheduler.Submit(c.r.Context(), c.caller, *s)
	if err != nil {
		return err
	}
	if got.Existing {
		return c.answer(http.StatusOK, got.Job)
	}
	c.api.traces.Submitted(c.r.Context(), &got.Job)
	return c.answer(http.StatusCreated, got.Job)
}

func (c *call) checkAll(b *jobBatch) error { return c.api.scheduler.CheckBatch(c.caller, b.Jobs) }

func (c *call) submitAll(b *jobBatch) error {
	if err := rules.BatchView(b.View); err != nil {
		return err
	}
	for i := range b.Jobs {
		if err := c.ownTenant(b.Jobs[i].TenantID); err != nil {
			return err
		}
	}
	got, err := c.api.scheduler.SubmitBatch(c.r.Context(), c.caller, b.Jobs)
	if err != nil {
		return err
	}
	for i := range got {
		if !got[i].Existing {
			c.api.traces.Submitted(c.r.Context(), &got[i].Job)
		}
	}
	if b.View != nil && *b.View == lessor.ViewIDs {
		return c.answer(http.StatusCreated, idsOf(got))
	}
	return c.answer(http.StatusCreated, jobsOf(got))
}

func (c *call) jobs() error {
	f, err := c.jobFilter()
	if err != nil {
		return err
	}
	jobs, next, err := c.api.scheduler.Jobs(c.r.Context(), c.caller, f)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, jobList{jobs, cursorOf(next)})
}

func (c *call) job(id lessor.JobID) error {
	wait := c.number("wait_ms")
	return polled(c, wait, func(ctx context.Context) (lessor.Job, error) {
		return c.api.scheduler.AwaitJob(ctx, c.caller, id, wait)
	})
}

func (c *call) jobEvents(id lessor.JobID) error {
	events, next, err := c.api.scheduler.Events(c.r.Context(), c.caller, id, c.limit(), c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, eventList{events, cursorOf(next)})
}

func (c *call) why(id lessor.JobID) error {
	return c.reply(c.api.scheduler.Why(c.r.Context(), c.caller, id))
}

func (c *call) cancel(id lessor.JobID, b *cancelBody) error {
	return c.reply(c.api.scheduler.Cancel(c.r.Context(), c.caller, id, b.Force != nil && *b.Force))
}

func (c *call) retry(id lessor.JobID, _ *empty) error {
	return c.reply(c.api.scheduler.Retry(c.r.Context(), c.caller, id))
}

func (c *call) answerJob(id lessor.JobID, a *lessor.Answer) error {
	return c.reply(c.api.scheduler.Answer(c.r.Context(), c.caller, id, *a))
}

func (c *call) message(id lessor.JobID, m *lessor.MessageAsk) error {
	sent, err := c.api.scheduler.Message(c.r.Context(), c.caller, id, *m)
	if err != nil {
		return err
	}
	return c.answer(http.StatusCreated, sent)
}
