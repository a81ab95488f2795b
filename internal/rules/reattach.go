package rules

import (
	"slices"
	"strings"

	"lessor"
)

// maxReattached bounds the entries that the reattachments of one lease add to a record. Only a server that restarts all
// the time comes so far.
const maxReattached = 1000

// Reattach notes that the command under a live lease was found alive after a restart. It holds the lease for one more
// ttl, so that the command can send a heartbeat, and counts as the first heartbeat if there was none.
func Reattach(h *Held, now lessor.Instant) []Note {
	h.WatchUntil = now.Add(h.TTL)
	if h.FirstBeatAt == 0 {
		h.FirstBeatAt = now
	}
	if h.Reattached == maxReattached {
		return nil
	}
	h.Reattached++
	return []Note{{
		Job: h.Turn.Job, Fence: h.Turn.Fence, Held: true, At: now, From: lessor.Running, To: lessor.Running,
		Actor: ActorScheduler, Reason: "reattached", Lease: h.ID, Attempt: h.Turn.Attempt,
	}}
}

// FoundDead reports whether the last attempt of a job that has ended did so because its command was found dead.
func (h *History) FoundDead() bool {
	if d := h.Standing.Done; d != nil && !d.Attempt.Lease.IsZero() {
		return d.Attempt.Reason == ReasonHeartbeatStopped
	}
	n := len(h.Attempts)
	return n > 0 && h.Attempts[n-1].Reason == ReasonHeartbeatStopped
}

// resumedAs begins the reason of the record's entry that names the job which continues this one.
const resumedAs = "resumed_as "

// successor returns the id of the job that continues this one since its last attempt, "" if there is none.
func (h *History) successor() string {
	for _, n := range slices.Backward(h.Notes) {
		if id, ok := strings.CutPrefix(n.Reason, resumedAs); ok && n.Fence == h.Standing.Turn.Fence {
			return id
		}
	}
	return ""
}

// Resume returns a new job, named next, like one that failed or expired for good, and the entry that names it in the
// record of the old one. A job whose command was found dead may still wait for its retry; the new job then takes the
// place of the retry. A job can be resumed once after each attempt.
func Resume(h *History, next lessor.JobID, actor string, now lessor.Instant) (*Spec, Change, error) {
	s := &h.Standing
	if err := CheckResume(h); err != nil {
		return nil, Change{}, err
	}
	var c Change
	if s.Place == Delayed {
		var err error
		if c, err = Cancel(s, false, actor, now); err != nil {
			return nil, c, err
		}
	}
	state := s.State()
	if c.Next != nil {
		state = c.Next.Done.State
	}
	c.Notes = append(c.Notes, Note{
		Job: s.Turn.Job, Fence: s.Turn.Fence, At: now, From: state, To: state, Actor: actor,
		Reason: resumedAs + next.String(), Attempt: s.Turn.Attempt,
	})
	spec := *s.Spec
	spec.ID, spec.ResumedFrom, spec.Actor = next, s.Spec.ID, actor
	spec.IdempotencyKey, spec.BodyHash = "", [32]byte{}
	spec.RunAt, spec.CreatedAt, spec.Seq = 0, now, 0
	return &spec, c, nil
}

// CheckResume refuses a job that cannot be resumed, and says why.
func CheckResume(h *History) error {
	s, dead := &h.Standing, h.FoundDead()
	over := s.Place == Ended && s.Done.State != lessor.Completed && s.Done.State != lessor.Cancelled
	switch {
	case h.successor() != "":
		return conflict("the job was resumed as job %s; resume or retry that one", h.successor())
	case dead && (s.Place == InQueue || s.Place == Leased):
		return conflict("the job's command was found dead and the job was queued again: it is %s now, after attempt "+
			"%d of %d; wait until it ends", s.State(), h.Attempts[len(h.Attempts)-1].Turn.Attempt, s.Turn.MaxAttempts)
	case !over && (s.Place != Delayed || !dead):
		return conflict("only a job that failed or expired for good, or whose command is dead, can be resumed; "+
			"this one is %s", s.State())
	case s.Spec.Payload == nil:
		return errNoPayload
	}
	return nil
}

// Resumed is the entry of a new job's record that names the job it continues.
func Resumed(s *Spec, now lessor.Instant) Note {
	return Note{
		Job: s.ID, At: now, From: lessor.Queued, To: lessor.Queued, Actor: s.Actor,
		Reason: "resumed_from " + s.ResumedFrom.String(), QueuedAt: now,
	}
}
