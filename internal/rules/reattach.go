package rules

import (
	"time"

	"lessor"
)

// ReasonHeartbeatStopped is how the record names the end of an attempt whose sentinel fell silent.
const ReasonHeartbeatStopped = "heartbeat_stopped"

// Reattach notes that the command under a live lease was found alive after a restart. The lease is held for one more ttl, so that the
// command can beat it. A lease that was not beaten before runs from now on.
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

// Resume turns a job that is over, and did not succeed, into the submission of a new one: what it was, as of now. One whose command is
// dead may still wait for its retry; the new job takes its place.
func Resume(s *Standing, dead bool, now lessor.Instant) (*Spec, error) {
	over := s.Place == Ended && s.Done.State != lessor.Completed && s.Done.State != lessor.Cancelled
	switch {
	case !over && (s.Place != Delayed || !dead):
		return nil, &lessor.Error{
			Code:   lessor.CodeConflict,
			Detail: "only a job that failed or expired for good, or whose command is dead, can be resumed; this one is " + string(s.State()),
		}
	case s.Spec.Payload == nil:
		return nil, &lessor.Error{Code: lessor.CodeConflict, Detail: "the job's payload is no longer kept; submit it again"}
	}
	next := *s.Spec
	next.ResumedFrom = s.Spec.ID
	next.ID, next.IdempotencyKey, next.BodyHash, next.RunAt, next.CreatedAt, next.Seq = lessor.JobID{}, "", [32]byte{}, 0, now, 0
	return &next, nil
}

// Resumed is the entry of a new job's record that tells what it goes on from.
func Resumed(s *Spec, now lessor.Instant) Note {
	return Note{
		Job: s.ID, At: now, From: lessor.Queued, To: lessor.Queued, Actor: s.Actor, Reason: "resumed_from " + s.ResumedFrom.String(), QueuedAt: now,
	}
}

// Speaks reports whether a file with this fence, found in a workspace, speaks for a lease: it carries the lease's fence, or
// none, and the lease was not asked for from another workspace.
func Speaks(h *Held, fence int64, workspace string) bool {
	return h != nil && (fence == 0 || fence == h.Turn.Fence) && (h.WorkspaceID == "" || h.WorkspaceID == workspace)
}

// Unbeaten returns for how long a live lease was not beaten. Time in which nobody could have accepted a heartbeat is left out.
func Unbeaten(h *Held, now lessor.Instant, s Serving) time.Duration {
	if before(h.BeatAt, now) {
		return now.Sub(s.Since)
	}
	return now.Sub(max(h.BeatAt, s.Since))
}

// Verdict is what silence says about a command.
type Verdict string

// The verdicts on a sentinel.
const (
	Fresh Verdict = "fresh"
	Stale Verdict = "stale"
	Dead  Verdict = "dead"
)

// Sighting is what a monitor knows about the silence of a sentinel.
type Sighting struct {
	SinceBeat  time.Duration  // by its own time and our clock: below zero if it lies in the future
	SinceSeen  time.Duration  // by our own clock, since this content was first seen
	SinceOther *time.Duration // by our own clock, since the last look at other content; nil = there was none
}

// Age returns how long a sentinel counts as silent: a time in the future or a clock that jumped can neither keep a
// dead command fresh nor kill a live one.
func (s Sighting) Age() time.Duration {
	age := max(s.SinceBeat, s.SinceSeen, 0)
	if s.SinceOther != nil {
		age = min(age, *s.SinceOther)
	}
	return age
}

// Judge returns the verdict on a silence. Below staleAfter it is fresh, above deadAfter dead.
func Judge(age, staleAfter, deadAfter time.Duration) Verdict {
	switch {
	case age < staleAfter:
		return Fresh
	case age <= deadAfter:
		return Stale
	}
	return Dead
}
