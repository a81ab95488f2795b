package rules

import "lessor"

// keptKeys bounds the keys that a job remembers: those of its last messages.
const keptKeys = 1000

// Message is a message to a job. Seq counts those of the job from 1, and goes on above Serving.Fence if the store went
// back: a worker that has seen a message which is lost would take another with its number for the same. If the store
// may have gone back unnoticed, while no node served, it goes on above Serving.Since.
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

// counted is above all numbers that count from 1, and below all that count from an instant.
const counted = 1 << 40

// Keyless returns up to which number messages need not be kept once they were seen up to a number. If the count of the
// job went on above an instant, the last ones before are not known by their numbers, and all are kept until there are
// enough after the latest such instant.
func Keyless(seen int64, s Serving) int64 {
	n := seen - keptKeys
	if n <= 0 || seen > counted && n < max(s.Fence, int64(s.Since)) {
		return 0
	}
	return n
}

// Unread returns how many messages of a job its worker has not seen, or more if numbers between them are not used.
func Unread(r *Report) int {
	if r == nil {
		return 0
	}
	return int(r.Sent - r.Seen)
}

// Inbox says how many messages wait for a job's worker, and how many may.
type Inbox struct {
	Unread, Limit int
	// Restorable says that the store cannot tell whether it was restored from a backup while no node served.
	Restorable bool
}

// Send decides a message to a job. It is kept until the job's worker has seen it. known is the message that has the
// same key: it is returned if it is the same.
func Send(st *Standing, known *Message, m Message, in Inbox, now lessor.Instant, s Serving) (Message, error) {
	if known != nil {
		if known.Text != m.Text {
			return Message{}, conflict("the key %q belongs to message %d, which has another text", m.Key, known.Seq)
		}
		return *known, nil
	}
	if st.Place == Ended {
		return Message{}, conflict("the job is %s and reads no messages any more", st.Done.State)
	}
	if in.Unread >= in.Limit {
		return Message{}, conflict("%d messages wait for the job's worker; send more when it has seen some", in.Unread)
	}
	m.Job, m.Seq, m.SentAt = st.Spec.ID, s.Fence+1, now
	if in.Restorable && st.Spec.CreatedAt < s.Since { // the job may have had messages that are lost
		m.Seq = max(m.Seq, int64(s.Since)+1)
	}
	if st.Report != nil {
		m.Seq = max(m.Seq, st.Report.Sent+1)
	}
	return m, nil
}
