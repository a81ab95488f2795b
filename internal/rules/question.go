package rules

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"lessor"
)

// defaultAsked is how long a question waits for its answer.
const defaultAsked = 7 * 24 * time.Hour

// asking checks the question of a completion and adds it to the end of the attempt.
func (c *check) asking(e *End, d *lessor.Completion) {
	if e.Outcome != OutcomeWaiting {
		if d.Question != nil || d.ExpiresInS != nil {
			c.fail("status", "must be waiting with a question, not %q", *d.Status)
		}
		return
	}
	if c.require("question", d.Question != nil); d.Question == nil {
		return
	}
	c.require("question.text", d.Question.Text != nil)
	q := &lessor.Question{Text: c.dialog("question.text", d.Question.Text), Choices: d.Question.Choices}
	if n := len(q.Choices); n > lessor.MaxChoices {
		c.fail("question.choices", "must be at most %d, not %d", lessor.MaxChoices, n)
		return
	}
	for i := range q.Choices {
		c.text("question.choices", &q.Choices[i], 1, lessor.MaxChoice, "")
	}
	seconds := c.number("expires_in_s", d.ExpiresInS, 1, int64(lessor.MaxAsked/time.Second),
		int64(defaultAsked/time.Second))
	e.Question, e.Delay = q, time.Duration(seconds)*time.Second
	raw, _ := json.Marshal(q) // it always marshals
	e.Said, e.Reason = said(*d.Status, raw, e.Error), "asked"
}

// dialog returns a text between a person and a job, of 1 to MaxDialog bytes.
func (c *check) dialog(field string, v *string) string {
	if v != nil && (*v == "" || len(*v) > lessor.MaxDialog) {
		c.fail(field, "must be 1 to %d bytes long, not %d", lessor.MaxDialog, len(*v))
	}
	return c.text(field, v, 0, math.MaxInt, "")
}

// Asked returns the question with which the attempt under h ended.
func Asked(h *Held, e End, now lessor.Instant) *lessor.Question {
	q := *e.Question
	q.ID, q.AskedAt = lessor.QuestionID(h.ID), now
	return &q
}

// question returns the job's question as callers see it.
func (s *Standing) question() *lessor.Question {
	if s.Report.Question == nil {
		return nil
	}
	q := *s.Report.Question
	if q.Choices == nil {
		q.Choices = []string{}
	}
	if s.State() == lessor.Waiting {
		q.ExpiresAt = s.Wait.Until
	}
	return &q
}

// CheckAnswer refuses an answer that lacks a field or is too long.
func CheckAnswer(a *lessor.Answer) error {
	var c check
	c.require("question_id", a.QuestionID != nil)
	c.require("answer", a.Answer != nil)
	c.dialog("answer", a.Answer)
	return c.err()
}

// Answer decides an answer to a job's question. The job is queued again in its place. An answer that was given before
// changes nothing, and neither does one to a question that the job does not ask any more: that is refused.
func Answer(s *Standing, a *lessor.Answer, actor string, now lessor.Instant) (Change, error) {
	if s.Report == nil || s.Report.Question == nil || s.Report.Question.ID.String() != *a.QuestionID {
		return Change{}, conflict("the job does not ask question %s; see its question", *a.QuestionID)
	}
	q := *s.Report.Question
	switch {
	case q.Answer != nil && *q.Answer == *a.Answer:
		return Change{}, nil
	case q.Answer != nil:
		return Change{}, conflict("the question has another answer already")
	case s.State() != lessor.Waiting:
		return Change{}, conflict("the job is %s and does not wait for an answer any more", s.State())
	case now >= s.Wait.Until:
		return Change{}, conflict("the time for an answer ended at %s", s.Wait.Until)
	case len(q.Choices) > 0 && !slices.Contains(q.Choices, *a.Answer):
		return Change{}, WrongField("answer", "must be %s, not %q", Either(quoted(q.Choices)), *a.Answer)
	}
	q.Answer, q.AnsweredAt, q.AnsweredBy = a.Answer, now, &actor
	t := s.Turn
	t.QueuedAt, t.Steps = now, t.Steps+1
	return Change{Next: &Next{Place: InQueue, Turn: t}, Question: &q, Notes: []Note{{
		Job: t.Job, Fence: t.Fence, At: now, From: lessor.Waiting, To: lessor.Queued, Actor: actor, Reason: "answered",
		Attempt: t.Attempt,
	}}}, nil
}

func quoted(words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strconv.Quote(w)
	}
	return all
}
