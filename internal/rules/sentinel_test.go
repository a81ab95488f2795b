package rules

import (
	"testing"
	"time"

	"lessor"
)

var thresholds = Thresholds{StaleAfter: 120 * time.Second, DeadAfter: 600 * time.Second}

func TestVerdictBoundaries(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		e    Evidence
		want Verdict
		next time.Duration
	}{
		"just pulsed":  {Evidence{Sentinel: true}, Fresh, 120 * time.Second},
		"almost stale": {Evidence{Sentinel: true, Age: 119_999 * ms}, Fresh, ms},
		"just stale": {
			Evidence{Sentinel: true, Age: 120 * time.Second},
			Stale,
			480*time.Second + ms,
		},
		"almost dead": {Evidence{Sentinel: true, Age: 600 * time.Second}, Stale, ms},
		"just dead": {
			Evidence{Sentinel: true, Age: 600_001 * ms, SinceBeat: time.Second},
			Dead,
			0,
		},
		"given up": {Evidence{Sentinel: true, GivenUp: true}, Dead, 120 * time.Second},
		"silent, its lease gets beats": {Evidence{
			Sentinel: true, Live: true, Age: time.Hour,
			SinceBeat: 119_999 * ms,
		}, Stale, ms},
		"silent, its lease gets none": {Evidence{
			Sentinel: true, Live: true, Age: time.Hour,
			SinceBeat: 120 * time.Second,
		}, Dead, 0},
		"no sentinel, no lease":            {Evidence{Age: time.Hour}, "", 0},
		"no sentinel yet":                  {Evidence{Live: true, Age: 119 * time.Second}, "", time.Second},
		"no sentinel for long":             {Evidence{Live: true, Age: time.Hour}, Stale, 0},
		"no sentinel, though it was given": {Evidence{Live: true, GivenUp: true, Age: time.Hour}, Stale, 0},
	} {
		if got := Judge(c.e, thresholds); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := VerdictChanges(c.e, thresholds); got != c.next {
			t.Errorf("%s: may change after %s, want %s", name, got, c.next)
		}
	}
}

func TestOperatorsWordHoldsForTheAttempt(t *testing.T) {
	for _, c := range []struct {
		why                          DeathReason
		samePulse, sameAttempt, want bool
	}{
		{DeathHeartbeatStopped, true, true, true},
		{DeathHeartbeatStopped, false, true, false},
		{DeathMarked, true, true, true},
		{DeathMarked, false, true, true},
		{DeathMarked, false, false, false},
	} {
		if got := GivenUp(c.why, c.samePulse, c.sameAttempt); got != c.want {
			t.Errorf("given up as %q, same pulse %v, same attempt %v: %v, want %v", c.why, c.samePulse, c.sameAttempt,
				got, c.want)
		}
	}
}

func TestEndedJobRaisesNothing(t *testing.T) {
	stale := Evidence{Sentinel: true, Age: 300 * time.Second}
	dead := Evidence{Sentinel: true, Age: time.Hour}
	of := func(e Evidence, s lessor.State, final, givenUp bool) Evidence {
		e.State, e.Final, e.GivenUp = s, final, givenUp
		return e
	}
	for name, c := range map[string]struct {
		e    Evidence
		hung bool
		want lessor.AlertKind
	}{
		"fresh":                               {Evidence{Sentinel: true}, false, ""},
		"stale":                               {of(stale, lessor.Running, false, false), false, lessor.AlertStale},
		"dead":                                {of(dead, lessor.Failed, false, false), false, lessor.AlertDead},
		"stale, unknown to the store":         {stale, false, lessor.AlertStale},
		"dead, unknown to the store":          {dead, false, lessor.AlertDead},
		"hung":                                {of(stale, lessor.Queued, false, false), true, lessor.AlertHung},
		"hung, expired for good":              {of(stale, lessor.Expired, true, false), true, lessor.AlertHung},
		"hung, and completed since":           {of(stale, lessor.Completed, true, false), true, ""},
		"completed, its sentinel stays":       {of(stale, lessor.Completed, true, false), false, ""},
		"completed, its sentinel is very old": {of(dead, lessor.Completed, true, false), false, ""},
		"cancelled, then marked dead":         {of(dead, lessor.Cancelled, true, true), false, ""},
		"failed for good by itself":           {of(dead, lessor.Failed, true, false), false, ""},
		"failed for good, found dead":         {of(dead, lessor.Failed, true, true), false, lessor.AlertDead},
	} {
		if got := AlertFor(c.e, thresholds, c.hung); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestMissedBeatBoundary(t *testing.T) {
	h := lease(func(h *Held) { h.TTL = 80 * time.Second })
	if MissedBeat(h, 30*time.Second) || !MissedBeat(h, 30*time.Second+time.Millisecond) {
		t.Error("a heartbeat is missed after three eighths of the ttl, not before")
	}
}

func TestOldCommandIsWatchedForTheRestOfItsLease(t *testing.T) {
	for name, c := range map[string]struct {
		age, left, want time.Duration
		reason          DeathReason
	}{
		"young enough":        {59 * time.Minute, time.Second, 5 * time.Minute, DeathNotResumed},
		"too old":             {time.Hour, 7 * time.Second, 7 * time.Second, DeathTooOld},
		"too old, lease over": {time.Hour, -time.Second, 0, DeathTooOld},
	} {
		got, reason := WatchFor(c.age, time.Hour, 5*time.Minute, c.left)
		if got != c.want || reason != c.reason {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got, reason, c.want, c.reason)
		}
	}
}

func TestAgeIsBoundedByWhatWasSeen(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		s    PulseTimes
		want time.Duration
	}{
		"by its own time":                     {PulseTimes{SincePulse: time.Minute}, time.Minute},
		"a time in the future":                {PulseTimes{SincePulse: -day}, 0},
		"a time in the future, seen for long": {PulseTimes{SincePulse: -day, SinceSeen: time.Hour}, time.Hour},
		"our clock jumped ahead": {
			PulseTimes{SincePulse: day, SinceOther: new(time.Minute)},
			time.Minute,
		},
		"silent since before the clock jumped": {PulseTimes{
			SincePulse: day, SinceSeen: time.Hour,
			SinceOther: new(time.Hour + time.Minute),
		}, time.Hour + time.Minute},
		"never seen with other content": {PulseTimes{SincePulse: day}, day},
	} {
		if got := c.s.Age(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestFilesSpeakForTheLeaseOfTheirFence(t *testing.T) {
	h := lease(func(h *Held) { h.Turn.Fence, h.WorkspaceID = 7, "here" })
	anywhere := lease(func(h *Held) { h.Turn.Fence = 7 })
	for name, c := range map[string]struct {
		h     *Held
		fence int64
		from  string
		want  bool
	}{
		"its own fence":                     {h, 7, "here", true},
		"no fence":                          {h, 0, "here", true},
		"an older fence":                    {h, 6, "here", false},
		"a newer fence":                     {h, 8, "here", false},
		"a copy in another workspace":       {h, 7, "there", false},
		"no fence, in another workspace":    {h, 0, "there", false},
		"a lease that names no workspace":   {anywhere, 7, "here", true},
		"a lease that is over, or none yet": {nil, 7, "here", false},
	} {
		if got := SpeaksFor(c.h, c.fence, c.from); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSinceBeatLeavesOutOurOwnDowntime(t *testing.T) {
	beatAt := func(at time.Duration) *Held { return lease(func(h *Held) { h.BeatAt = after(at) }) }
	for name, c := range map[string]struct {
		h     *Held
		since time.Duration
		want  time.Duration
	}{
		"since the beat":                 {beatAt(-time.Minute), -time.Hour, time.Minute},
		"since we serve again":           {beatAt(-time.Hour), -time.Minute, time.Minute},
		"heartbeat on a clock far ahead": {beatAt(24 * time.Hour), -time.Minute, time.Minute},
		"heartbeat on a clock a bit off": {beatAt(500 * time.Millisecond), -time.Minute, -500 * time.Millisecond},
	} {
		if got := SinceBeat(c.h, after(0), Serving{Since: after(c.since), LastBeat: after(0)}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
