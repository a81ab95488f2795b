package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Message sends a message to a job. The job's worker receives it with the answers to its heartbeats. A message with the
// key of an earlier one changes nothing.
func (s *Scheduler) Message(
	ctx context.Context, c Caller, id lessor.JobID, ask lessor.MessageAsk,
) (lessor.Message, error) {
	m, err := rules.CheckMessage(&ask)
	if err != nil {
		return lessor.Message{}, err
	}
	m.SentBy = c.Actor
	var sent rules.Message
	err = s.change(ctx, c, func(ctx context.Context, p *pass) error {
		st, err := p.lock(ctx, c, id)
		if err != nil {
			return err
		}
		var known *rules.Message
		if m.Key != "" {
			if known, err = p.tx.KeyedMessage(ctx, id, m.Key); err != nil {
				return err
			}
		}
		in := rules.Inbox{
			Unread: rules.Unread(st.Report), Limit: s.cfg.MaxMessages, Restorable: s.store.Shared(),
		}
		if known == nil && in.Unread >= in.Limit {
			all, err := p.tx.Messages(ctx, []lessor.JobID{id}, in.Limit)
			if err != nil {
				return err
			}
			in.Unread = len(all[id])
		}
		sent, err = rules.Send(st, known, m, in, p.now, p.serving)
		if err != nil || known != nil {
			return err
		}
		if err := p.tx.SaveMessages(ctx, []rules.Message{sent}); err != nil {
			return err
		}
		p.l.fold.Message(id, sent.Seq, st.Held, p.now)
		return p.tx.SaveReports(ctx, []rules.Report{{Job: id, At: p.now, Sent: sent.Seq}})
	})
	return sent.Message, err
}
