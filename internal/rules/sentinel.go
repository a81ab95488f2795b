package rules

import (
	"time"

	"lessor"
)

// ReasonHeartbeatStopped is the record's reason for the end of an attempt whose command was found dead.
const ReasonHeartbeatStopped = "heartbeat_stopped"

// DeathReason says why a command counts as dead. It is the error text of the attempt.
type DeathReason string

// The reasons of a death.
const (
	DeathHeartbeatStopped DeathReason = "Heartbeat stopped"
	DeathNotResumed       DeathReason = "Heartbeat not resumed after restart"
	DeathTooOld           DeathReason = "Server restart, heartbeat not resumed"
	DeathMarked           DeathReason = "Marked dead by an operator"
)

// SpeaksFor reports whether a file found in a workspace speaks for a lease: the file has the fence of the lease or
// none, and the lease was not requested from another workspace.
func SpeaksFor(h *Held, fence int64, workspace string) bool {
	return h != nil && (fence == 0 || fence == h.Turn.Fence) && (h.WorkspaceID == "" || h.WorkspaceID == workspace)
}

// SinceBeat returns the time since the last heartbeat of a live lease. Time in which no heartbeat could be accepted
// does not count.
func SinceBeat(h *Held, now lessor.Instant, s Serving) time.Duration {
	if before(h.BeatAt, now) {
		return now.Sub(s.Since)
	}
	return now.Sub(max(h.BeatAt, s.Since))
}

// MissedBeat reports whether a heartbeat of a lease is overdue: Pace asks for one each third of the ttl.
func MissedBeat(h *Held, sinceBeat time.Duration) bool { return sinceBeat > h.TTL*3/8 }

// PulseTimes are what a monitor has measured about a sentinel.
type PulseTimes struct {
	SincePulse time.Duration  // by the time in the file; negative if that lies in the future
	SinceSeen  time.Duration  // by the monitor's clock, since it first saw this pulse
	SinceOther *time.Duration // by the monitor's clock, since it last saw another pulse; nil if it never did
}

// Age returns how long a sentinel counts as silent. Neither a time in the future nor a step of a clock keeps a dead
// command fresh or kills a live one.
func (p PulseTimes) Age() time.Duration {
	age := max(p.SincePulse, p.SinceSeen, 0)
	if p.SinceOther != nil {
		age = min(age, *p.SinceOther)
	}
	return age
}

// Verdict is what silence says about a command.
type Verdict string

// The verdicts on a command. An empty one says that there is nothing to judge.
const (
	Fresh Verdict = "fresh"
	Stale Verdict = "stale"
	Dead  Verdict = "dead"
)

// Thresholds bound the silence of a sentinel: fresh below StaleAfter, dead above DeadAfter.
type Thresholds struct{ StaleAfter, DeadAfter time.Duration }

// Evidence is what a monitor knows about a command when it judges it.
type Evidence struct {
	Sentinel  bool          // there is a valid sentinel
	Live      bool          // the folder speaks for a live lease
	GivenUp   bool          // the command was given up: see GivenUp
	Age       time.Duration // the silence of the sentinel; without one, how long it has been missing
	SinceBeat time.Duration // since the last heartbeat of the live lease
	State     lessor.State  // of the job; "" = the store does not know it
	Final     bool          // nothing more happens to the job
}

// GivenUp reports whether a command that was given up because of why counts as dead. One that stopped pulsing counts
// until it pulses again. The word of an operator holds for the attempt: a command may pulse once more while it stops.
func GivenUp(why DeathReason, samePulse, sameAttempt bool) bool {
	return samePulse || why == DeathMarked && sameAttempt
}

// Judge returns the verdict on a command. A command that was given up is dead. One whose sentinel is missing, or whose
// lease gets heartbeats, is at worst stale.
func Judge(e Evidence, t Thresholds) Verdict {
	switch {
	case !e.Sentinel && (!e.Live || e.Age < t.StaleAfter):
		return ""
	case !e.Sentinel:
		return Stale
	case e.GivenUp:
		return Dead
	case e.Age < t.StaleAfter:
		return Fresh
	case e.Age <= t.DeadAfter || e.beats(t):
		return Stale
	}
	return Dead
}

// AlertFor returns the alert that a command calls for, "" for none. hung says that it pulses although its lease has
// expired. A job that has ended calls for none, unless its command was found dead or is hung.
func AlertFor(e Evidence, t Thresholds, hung bool) lessor.AlertKind {
	v := Judge(e, t)
	switch {
	case e.State == lessor.Completed || e.State == lessor.Cancelled:
		return ""
	case hung:
		return lessor.AlertHung
	case e.Final && !e.GivenUp:
		return ""
	case v == Stale:
		return lessor.AlertStale
	case v == Dead:
		return lessor.AlertDead
	}
	return ""
}

// VerdictChanges returns after how long the verdict may change without a new sign of life; 0 means never.
func VerdictChanges(e Evidence, t Thresholds) time.Duration {
	const aMoment = time.Millisecond // the least: clocks of different speed must not make a monitor run hot
	switch {
	case !e.Sentinel && (!e.Live || e.Age >= t.StaleAfter):
		return 0
	case e.Age < t.StaleAfter:
		return max(t.StaleAfter-e.Age, aMoment)
	case e.Age <= t.DeadAfter:
		return t.DeadAfter - e.Age + aMoment
	case e.beats(t):
		return max(t.StaleAfter-e.SinceBeat, aMoment)
	}
	return 0
}

// beats reports whether the live lease got a heartbeat lately.
func (e Evidence) beats(t Thresholds) bool { return e.Live && e.SinceBeat < t.StaleAfter }

// WatchFor returns how long a node waits after its start for a sign of a command, and the reason of the death if none
// comes. A command that was silent for limit or longer gets only what is left of its lease.
func WatchFor(age, limit, watch, leaseLeft time.Duration) (time.Duration, DeathReason) {
	if age >= limit {
		return max(leaseLeft, 0), DeathTooOld
	}
	return watch, DeathNotResumed
}
