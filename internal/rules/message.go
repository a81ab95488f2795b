package rules

import "lessor"

// keptKeys bounds the keys that a job remembers: those of its last messages.
const keptKeys = 1000

// Message is a message to a job. Seq counts those of the job from 1.
type Message struct {
	Job lessor.JobID
	Key string // "" = none
	lessor.Message
}

// CheckMessage checks a message and returns it with its text and key.
func CheckMessage(ask *lessor.MessageAsk) (m Message, err error) {
	var c check
	c.require("text", ask.Text != nil)
	m.Text, m.Key = c.dialog("text", ask.Text), c.text("key", ask.Key, 1, maxKey, "")
	return m, c.err()
}

// Keyless returns up to which number messages need not be kept once they were seen up to a number.
func Keyless(seen int64) int64 { return max(0, seen-keptKeys) }

// Send decides a message to a job. It is kept until the job's worker has seen it, at most limit at a time. known is the
// message that has the same key: it is returned if it is the same.
func Send(s *Standing, known *Message, m Message, limit int, now lessor.Instant) (Message, error) {
	if known != nil {
		if known.Text != m.Text {
			return Message{}, conflict("the key %q belongs to message %d, which has another text", m.Key, known.Seq)
		}
		return *known, nil
	}
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
	m.Job, m.Seq, m.SentAt = s.Spec.ID, sent+1, now
	return m, nil
}
