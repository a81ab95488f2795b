package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// A pass delivers messages to at most deliverJobs jobs, and about as many messages in all; the others get theirs with
// the next heartbeat. One answer has at most deliverMost.
const (
	deliverJobs = 512
	deliverMost = 64
)

// deliver puts messages into the answers of heartbeats, and removes those that the heartbeats confirm.
func (p *pass) deliver(ctx context.Context, calls []*beatCall) error {
	var due []*beat
	var jobs []lessor.JobID
	var seen []Seen
	for _, c := range calls {
		for i := range c.beats {
			b := &c.beats[i]
			last := p.l.fold.Unseen(b.job)
			if last == 0 || b.err != nil {
				continue
			}
			if b.ask.Seen > 0 {
				seen = append(seen, p.seenUpTo(b.job, min(b.ask.Seen, last)))
			}
			if b.ask.Seen < last && len(due) < deliverJobs {
				due, jobs = append(due, b), append(jobs, b.job)
			}
		}
	}
	if err := p.dropMessages(ctx, seen); err != nil || len(due) == 0 {
		return err
	}
	all, err := p.tx.Messages(ctx, jobs, min(deliverMost, 1+deliverJobs/len(jobs)))
	for _, b := range due {
		if b.answer.Messages = all[b.job]; err == nil && len(all[b.job]) == 0 {
			p.l.fold.Seen(b.job, p.l.fold.Unseen(b.job)) // another node's news came out of order
		}
	}
	return err
}

func (p *pass) seenUpTo(job lessor.JobID, n int64) Seen {
	return Seen{Job: job, UpTo: n, Keyless: rules.Keyless(n, p.serving)}
}

// dropMessages removes messages that no worker will request any more.
func (p *pass) dropMessages(ctx context.Context, all []Seen) error {
	for _, s := range all {
		p.l.fold.Seen(s.Job, s.UpTo)
		p.reports = append(p.reports, rules.Report{Job: s.Job, At: p.now, Seen: s.UpTo})
	}
	return p.tx.DropMessages(ctx, all)
}

// forget removes the messages of jobs that have ended.
func (p *pass) forget(ctx context.Context, moves []Move) error {
	var unread []Seen
	for i := range moves {
		if d := moves[i].Done; d != nil {
			if last := p.l.fold.Unseen(d.Attempt.Turn.Job); last != 0 {
				unread = append(unread, p.seenUpTo(d.Attempt.Turn.Job, last))
			}
		}
	}
	if len(unread) == 0 {
		return nil
	}
	if err := p.dropMessages(ctx, unread); err != nil {
		return err
	}
	reports := p.reports
	p.reports = nil
	return p.tx.SaveReports(ctx, reports)
}
