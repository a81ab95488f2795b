package rules

import "lessor"

// Reattach notes that the command under a live lease was found alive after a restart. It holds the lease for one more
// ttl, so that the command can send a heartbeat, and counts as the first heartbeat if there was none.
func Reattach(h *Held, now lessor.Instant) []Note {
	h.WatchUntil = now.Add(h.TTL)
	if h.FirstBeatAt == 0 {
		h.FirstBeatAt = now
	}
	if h.Reattached {
		return nil
	}
	h.Reattached = true
	return []Note{{
		Job: h.Turn.Job, Fence: h.Turn.Fence, Held: true, At: now, From: lessor.Running, To: lessor.Running,
		Actor: ActorScheduler, Reason: "reattached", Lease: h.ID, Attempt: h.Turn.Attempt,
	}}
}

// Resume returns a new job like one that failed or expired for good. A job whose command was found dead may still wait
// for its retry; the new job then takes the place of the retry.
func Resume(s *Standing, dead bool, now lessor.Instant) (*Spec, error) {
	over := s.Place == Ended && s.Done.State != lessor.Completed && s.Done.State != lessor.Cancelled
	switch {
	case !over && (s.Place != Delayed || !dead):
		return nil, &lessor.Error{
			Code: lessor.CodeConflict,
			Detail: "only a job that failed or expired for good, or whose command is dead, can be resumed; " +
				"this one is " + string(s.State()),
		}
	case s.Spec.Payload == nil:
		return nil, &lessor.Error{
			Code:   lessor.CodeConflict,
			Detail: "the job's payload is no longer kept; submit it again",
		}
	}
	next := *s.Spec
	next.ResumedFrom = s.Spec.ID
	next.ID, next.IdempotencyKey, next.BodyHash = lessor.JobID{}, "", [32]byte{}
	next.RunAt, next.CreatedAt, next.Seq = 0, now, 0
	return &next, nil
}

// Resumed is the entry of a new job's record that names the job it continues.
func Resumed(s *Spec, now lessor.Instant) Note {
	return Note{
		Job: s.ID, At: now, From: lessor.Queued, To: lessor.Queued, Actor: s.Actor,
		Reason: "resumed_from " + s.ResumedFrom.String(), QueuedAt: now,
	}
}
