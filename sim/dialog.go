package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// person talks with jobs: answers their questions, sends them messages, and reads what they say.
type person struct {
	*client
	asked []asked // questions that were seen before
	sent  int
}

// asked is a question as a person saw it.
type asked struct {
	job    lessor.JobID
	tenant lessor.TenantID
	lessor.Question
}

func (w *world) talk(t *task) {
	p := &person{client: w.client(t, scheduler.Caller{Actor: "person"})}
	for !w.quiet {
		switch {
		case p.chance(45):
			p.answer()
		case p.chance(80):
			p.message()
		default:
			p.browse()
		}
		p.rest(time.Duration(p.random.ExpFloat64() * float64(2*w.tempo)))
	}
}

// answer answers a question, perhaps wrongly, perhaps again, and perhaps one that was answered long ago; or it cancels
// the job that waits.
func (p *person) answer() {
	page, err := call(p.client, "waiting", func(ctx context.Context, n *node) ([]lessor.Job, error) {
		page, _, err := n.Jobs(ctx, p.caller, lessor.JobFilter{State: lessor.Waiting, Limit: 10})
		return page, err
	})
	if err != nil {
		return
	}
	for i := range page {
		if page[i].Question == nil || page[i].Question.Answer != nil {
			p.world.fail("questions", "job %v waits for an answer to %+v", page[i].ID, page[i].Question)
			return
		}
		p.asked = append(p.asked, asked{page[i].ID, page[i].TenantID, *page[i].Question})
	}
	p.asked = p.asked[max(0, len(p.asked)-20):]
	if len(p.asked) == 0 {
		return
	}
	q := p.asked[len(p.asked)-1]
	switch {
	case p.chance(15):
		q = p.asked[p.random.IntN(len(p.asked))]
	case p.chance(10):
		p.alter(p.world.known.job(q.job, q.tenant))
		return
	}
	for range 1 + p.random.IntN(2) {
		text := []string{"yes", "no", "perhaps"}[p.random.IntN(3)]
		sent := p.world.now
		err := p.do("answer", func(ctx context.Context, n *node) error {
			_, err := n.Answer(ctx, p.caller, q.job, lessor.Answer{QuestionID: new(q.ID.String()), Answer: &text})
			return err
		})
		if err == nil && !p.world.known.stale(sent) {
			p.world.known.answered(q, text)
		}
	}
}

// answered notes an acknowledged answer: a question has one, of those that it allows, and its job has it.
func (b *knowledge) answered(q asked, text string) {
	if was, known := b.answers[q.ID]; known && was != text {
		b.fail("questions", "question %v of job %v was answered %s, then %s", q.ID, q.job, was, text)
	}
	if len(q.Choices) > 0 && !slices.Contains(q.Choices, text) {
		b.fail("questions", "%s is an answer to question %v, which allows %v", text, q.ID, q.Choices)
	}
	b.answers[q.ID] = text
	b.read(func(v scheduler.View) error {
		all, err := v.Standings(ctx, []lessor.JobID{q.job})
		if st := all[q.job]; st != nil && st.Report != nil {
			b.checkAnswer(q.job, st.Report.Question)
		}
		return err
	})
}

// checkAnswer checks that a question has the answer that was acknowledged.
func (b *knowledge) checkAnswer(id lessor.JobID, q *lessor.Question) {
	if q == nil {
		return
	}
	if was, known := b.answers[q.ID]; known && (q.Answer == nil || *q.Answer != was) {
		b.fail("questions", "question %v of job %v was answered %s, and is %+v", q.ID, id, was, q)
	}
}

// resumed checks the question of a job that is granted again: it was answered, or its time is over.
func (b *knowledge) resumed(j *knownJob, q *lessor.Question) {
	if q == nil {
		return
	}
	b.checkAnswer(j.id, q)
	l := b.leases[lessor.LeaseID(q.ID)]
	if q.Answer != nil || l == nil || l.lost || j.retried || b.plan.has(Clock) || b.backAt != 0 {
		return
	}
	began, ended := l.how["waiting"]
	if slack := 20*time.Millisecond + l.asks/2000; ended && b.now < began+l.asks-slack {
		b.fail("questions", "job %v goes on after %v, its question waits for %v", j.id, b.now-began, l.asks)
	}
}

// message sends a message to a job.
func (p *person) message() {
	page, err := call(p.client, "leases", func(ctx context.Context, n *node) ([]lessor.Lease, error) {
		page, _, err := n.Leases(ctx, p.caller, "", 20, "")
		return page, err
	})
	if err != nil || len(page) == 0 {
		return
	}
	j := p.world.known.jobs[page[p.random.IntN(len(page))].JobID]
	if j == nil {
		return // no caller knows it yet
	}
	for range 1 + p.random.IntN(4) {
		p.sent++
		ask, sent := lessor.MessageAsk{Text: new(fmt.Sprintf("message %d", p.sent))}, p.world.now
		if p.chance(30) {
			ask.Key = ask.Text
		}
		text := *ask.Text
		m, err := call(p.client, "message", func(ctx context.Context, n *node) (lessor.Message, error) {
			return n.Message(ctx, p.caller, j.id, ask)
		})
		if err != nil || p.world.known.stale(sent) {
			return
		}
		if was, known := j.messages[m.Seq]; known {
			p.world.fail("messages", "message %d of job %v is %q and %q", m.Seq, j.id, was.text, text)
		}
		if j.messages == nil {
			j.messages = map[int64]sentMessage{}
		}
		j.messages[m.Seq] = sentMessage{text, p.world.now}
		if ask.Key != nil && p.chance(50) && !p.again(j, ask, m.Seq) {
			return
		}
	}
}

// again repeats a message with a key, which must be stored once. Another text under its key must be refused.
func (p *person) again(j *knownJob, ask lessor.MessageAsk, seq int64) bool {
	other, sent := p.chance(30), p.world.now
	if other {
		ask.Text = new("another text")
	}
	m, err := call(p.client, "message", func(ctx context.Context, n *node) (lessor.Message, error) {
		return n.Message(ctx, p.caller, j.id, ask)
	})
	if err == nil && (other || m.Seq != seq) && !p.world.known.stale(sent) {
		p.world.fail("messages", "key %s of job %v was message %d and is message %d", *ask.Key, j.id, seq, m.Seq)
	}
	return err == nil
}

// sentMessage is a message that was acknowledged.
type sentMessage struct {
	text string
	at   time.Duration
}

// sentBetween reports whether a message between two numbers was acknowledged. Numbers are left out where a node
// believes that the database went back.
func (j *knownJob) sentBetween(after, before int64) bool {
	for seq := range j.messages {
		if after < seq && seq < before {
			return true
		}
	}
	return false
}

// receive takes the messages of an answer: in order, none that was confirmed before the call, and all that were sent
// long ago. confirmed is what was when the call was sent.
func (k *worker) receive(g *heldLease, messages []lessor.Message, confirmed int64, sent time.Duration) {
	j, w := g.lease.job, k.world
	for i, m := range messages {
		was, known := j.messages[m.Seq]
		switch {
		case i > 0 && (m.Seq <= messages[i-1].Seq || j.sentBetween(messages[i-1].Seq, m.Seq)):
			w.fail("messages", "message %d of job %v comes after message %d", m.Seq, j.id, messages[i-1].Seq)
		case m.Seq <= confirmed:
			w.fail("messages", "message %d of job %v comes again, %d were confirmed", m.Seq, j.id, confirmed)
		case known && was.text != m.Text:
			w.fail("messages", "message %d of job %v was %q and is %q", m.Seq, j.id, was.text, m.Text)
		case j.lostMessages[m.Seq] != "" && j.lostMessages[m.Seq] != m.Text:
			w.fail("messages", "message %d of job %v is %q; before the loss it was %q", m.Seq, j.id, m.Text,
				j.lostMessages[m.Seq])
		}
		g.seen = m.Seq
	}
	if len(messages) > 0 || !w.noFaultFor(20*time.Second) {
		return
	}
	for seq, m := range j.messages {
		long := m.at > g.tookAt && m.at+10*time.Second < sent // the end of a job drops its messages
		if seq > j.doubtful && long && w.faults.faultAt < m.at-20*time.Second {
			w.fail("messages", "message %d of job %v, of %v, is not delivered", seq, j.id, m.at)
		}
	}
}
