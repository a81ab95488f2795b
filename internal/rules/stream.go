package rules

import "lessor"

// The entries that one change adds to a job's record, for those who follow the records as they grow. They equal what
// Record tells later.

// Submitted is the first entry of every record.
func Submitted(s *Spec) lessor.Event {
	return Note{To: lessor.Queued, At: s.CreatedAt, Actor: s.Actor, Reason: "submitted"}.Event(1, "", s.TraceID)
}

// CameDue is the entry of a job that waited for its retry and is queued again; t is its turn in the queue.
func CameDue(t Turn, w Wait) (lessor.Event, bool) {
	if w.State == lessor.Queued {
		return lessor.Event{}, false
	}
	return dueNote(t, t.QueuedAt).Event(t.Steps, w.State, ""), true
}

// Granted is the entry of a new lease.
func Granted(h *Held) lessor.Event {
	a := attemptOf(h, End{}, 0)
	return a.granted().Event(h.Turn.Steps, lessor.Queued, "")
}

// Began is the entry of a first heartbeat.
func Began(h *Held) lessor.Event {
	a := attemptOf(h, End{}, 0)
	return a.began().Event(h.Steps(), lessor.Leased, "")
}

// Concluded is the entry of an attempt's end; h is its lease as it was.
func Concluded(h *Held, n Next) lessor.Event {
	a := n.Attempt
	if n.Done != nil {
		a = &n.Done.Attempt
	}
	return a.ended().Event(h.Steps()+1, h.State(), "")
}
