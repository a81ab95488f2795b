package rules

import (
	"slices"

	"lessor"
)

// Record returns a job's record, oldest entry first, from what the store keeps. After each commit the record only
// grows: it begins with all earlier entries, unchanged (TestRecordOnlyGrows).
func Record(h *History) []lessor.Event {
	w := walker{h: h, trace: h.Standing.Spec.TraceID}
	w.add(Note{To: lessor.Queued, At: h.Standing.Spec.CreatedAt, Actor: h.Standing.Spec.Actor, Reason: "submitted"})
	w.notes(0, false, "")
	for _, a := range h.Attempts {
		w.attempt(&a)
	}
	switch st := &h.Standing; st.Place {
	case Leased:
		a := attemptOf(st.Held, End{}, 0)
		w.attempt(&a)
	case Ended:
		if a := st.Done.Attempt; !a.Lease.IsZero() {
			w.attempt(&a)
		}
	case InQueue:
		w.due(st.Turn.QueuedAt, st.Turn)
	}
	return w.events
}

// Replay returns the state that a record ends in.
func Replay(record []lessor.Event) lessor.State {
	if len(record) == 0 {
		return ""
	}
	return record[len(record)-1].To
}

type walker struct {
	h      *History
	trace  string
	state  lessor.State
	events []lessor.Event
}

// attempt adds one attempt, ended or not (EndedAt 0), with the notes made during and after it.
func (w *walker) attempt(a *Attempt) {
	w.due(a.Turn.QueuedAt, Turn{Fence: w.lastFence(), Attempt: a.Turn.Attempt - 1})
	w.add(a.granted())
	w.notes(a.Turn.Fence, true, lessor.Leased)
	if a.FirstBeatAt != 0 {
		w.add(a.began())
		w.notes(a.Turn.Fence, true, lessor.Running)
	}
	if a.EndedAt != 0 {
		w.add(a.ended())
		w.notes(a.Turn.Fence, false, "")
	}
}

// due adds that a job which waited for its retry or for an answer was queued.
func (w *walker) due(at lessor.Instant, t Turn) {
	if w.state != lessor.Queued {
		w.add(dueNote(t, w.state, at))
	}
}

func (w *walker) lastFence() int64 {
	for _, e := range slices.Backward(w.events) {
		if e.Fence != nil {
			return *e.Fence
		}
	}
	return 0
}

func (w *walker) notes(fence int64, held bool, to lessor.State) {
	for _, n := range w.h.Notes {
		if n.Fence != fence || n.Held != held || held && n.To != to {
			continue
		}
		if n.From == lessor.Queued {
			w.due(n.QueuedAt, Turn{Fence: n.Fence, Attempt: n.Attempt})
		}
		w.add(n)
	}
}

func (w *walker) add(n Note) {
	w.events = append(w.events, n.Event(len(w.events)+1, w.state, w.trace))
	w.state = n.To
}

// Event returns the note as the entry number seq of a record whose last state was from.
func (n Note) Event(seq int, from lessor.State, trace string) lessor.Event {
	e := lessor.Event{
		Seq: seq, At: n.At, To: n.To, Actor: n.Actor, Reason: n.Reason, Attempt: n.Attempt,
		TraceID: trace,
	}
	if from != "" {
		e.From = &from
	}
	if !n.Lease.IsZero() {
		e.LeaseID, e.Fence = &n.Lease, &n.Fence
	}
	return e
}

func (a *Attempt) note(at lessor.Instant, to lessor.State, actor, reason string) Note {
	return Note{
		Job: a.Turn.Job, Fence: a.Turn.Fence, Lease: a.Lease, Attempt: a.Turn.Attempt,
		At: at, To: to, Actor: actor, Reason: reason,
	}
}

func (a *Attempt) granted() Note {
	return a.note(a.GrantedAt, lessor.Leased, ActorOf(a.Taker, a.Worker), "granted")
}

func (a *Attempt) began() Note {
	return a.note(a.FirstBeatAt, lessor.Running, ActorOf(a.Taker, a.Worker), "first_heartbeat")
}

func (a *Attempt) ended() Note {
	to := lessor.State(a.Outcome)
	if a.Outcome == OutcomeReleased {
		to = lessor.Queued
	}
	return a.note(a.EndedAt, to, a.Actor, a.Reason)
}

func dueNote(t Turn, was lessor.State, at lessor.Instant) Note {
	reason := "retry_due"
	if was == lessor.Waiting {
		reason = "unanswered"
	}
	return Note{
		Job: t.Job, Fence: t.Fence, Attempt: t.Attempt, At: at, To: lessor.Queued, Actor: ActorScheduler,
		Reason: reason,
	}
}

// The functions below return the entry that one change adds to a record, for the stream of events. It equals what
// Record returns later.

// Submitted is the first entry of every record.
func Submitted(s *Spec) lessor.Event {
	return Note{To: lessor.Queued, At: s.CreatedAt, Actor: s.Actor, Reason: "submitted"}.Event(1, "", s.TraceID)
}

// CameDue is the entry of a job that waited for its retry or for an answer, and is queued again; t is its turn in the
// queue.
func CameDue(t Turn, w Wait) (lessor.Event, bool) {
	if w.State == lessor.Queued {
		return lessor.Event{}, false
	}
	return dueNote(t, w.State, t.QueuedAt).Event(t.Steps, w.State, ""), true
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
