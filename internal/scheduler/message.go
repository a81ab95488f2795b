package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Message sends a message to a job. Its worker receives it with the answers to its heartbeats.
func (s *Scheduler) Message(
	ctx context.Context, c Caller, id lessor.JobID, ask lessor.MessageAsk,
) (lessor.Message, error) {
	if err := rules.CheckMessage(&ask); err != nil {
		return lessor.Message{}, err
	}
	var sent rules.Message
	err := s.change(ctx, c, func(ctx context.Context, p *pass) error {
		st, err := p.lock(ctx, c, id)
		if err != nil {
			return err
		}
		if sent, err = rules.Send(st, *ask.Text, c.Actor, s.cfg.MaxMessages, p.now); err != nil {
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
