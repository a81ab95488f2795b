package rules

import "lessor"

// Message is a message to a job. Seq counts those of the job from 1.
type Message struct {
	Job lessor.JobID
	lessor.Message
}

// CheckMessage refuses a message that is empty or too long.
func CheckMessage(m *lessor.MessageAsk) error {
	var c check
	c.require("text", m.Text != nil)
	c.dialog("text", m.Text)
	return c.err()
}

// Send decides a message to a job. It is kept until the job's worker has seen it, at most limit at a time.
func Send(s *Standing, text, actor string, limit int, now lessor.Instant) (Message, error) {
	if s.Place == Ended {
		return Message{}, conflict("the job is %s and reads no messages any more", s.Done.State)
	}
	var sent, seen int64
	if r := s.Report; r != nil {
		sent, seen = r.Sent, r.Seen
	}
	if sent-seen >= int64(limit) {
		return Message{}, conflict("%d messages wait for the job's worker; send more when it has seen some", sent-seen)
	}
	m := lessor.Message{Seq: sent + 1, Text: text, SentAt: now, SentBy: actor}
	return Message{Job: s.Spec.ID, Message: m}, nil
}
