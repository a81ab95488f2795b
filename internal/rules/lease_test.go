package rules

import (
	"errors"
	"testing"
	"time"

	"lessor"
)

func TestLeaseIsOverFromItsEffectiveEndOn(t *testing.T) {
	const ms = time.Millisecond
	runs := func(d time.Duration) func(*Held) { return func(h *Held) { h.MaxRuntime = d } }
	watched := func(h *Held) { h.WatchUntil = after(90 * time.Second) }
	beatAt := func(at time.Duration) func(*Held) {
		return func(h *Held) { h.BeatAt, h.ExpiresAt = after(at), after(at+time.Minute) }
	}
	long := after(-time.Hour)
	for _, c := range []struct {
		name    string
		lease   *Held
		now     time.Duration
		floor   lessor.Instant
		outcome Outcome
		end     time.Duration // effective
	}{
		{"1 ms before expires_at", lease(), time.Minute - ms, long, "", time.Minute},
		{"exactly at expires_at", lease(), time.Minute, long, OutcomeExpired, time.Minute},
		{"1 ms after expires_at", lease(), time.Minute + ms, long, OutcomeExpired, time.Minute},
		{"1 ms before the floor ends", lease(), 80*time.Second - ms, after(20 * time.Second), "", 80 * time.Second},
		{"when the floor ends", lease(), 80 * time.Second, after(20 * time.Second), OutcomeExpired, 80 * time.Second},
		{"a floor that ends before expires_at", lease(), time.Minute - ms, after(-ms), "", time.Minute},
		{"1 ms before watch_until", lease(watched), 90*time.Second - ms, long, "", 90 * time.Second},
		{"at watch_until", lease(watched), 90 * time.Second, long, OutcomeExpired, 90 * time.Second},
		{"a floor beyond watch_until", lease(watched), 90 * time.Second, after(time.Minute), "", 2 * time.Minute},

		{
			"heartbeat 2 s ahead of now: a step of which the floor may not know yet", lease(beatAt(2 * time.Second)), 0,
			long,
			"", 62 * time.Second,
		},
		{
			"heartbeat 2 s + 1 ms ahead of now: the floor alone, before its end", lease(beatAt(2*time.Second + ms)), 0,
			after(-time.Minute + ms), "", ms,
		},
		{
			"heartbeat 2 s + 1 ms ahead of now: the floor alone, at its end", lease(beatAt(2*time.Second + ms)), 0,
			after(-time.Minute), OutcomeExpired, 0,
		},

		{
			"1 ms before max_runtime", lease(beatAt(50*time.Second), runs(55*time.Second)), 55*time.Second - ms, long,
			"",
			110 * time.Second,
		},
		{
			"at max_runtime, with heartbeats", lease(beatAt(50*time.Second), runs(55*time.Second)), 55 * time.Second,
			long,
			OutcomeFailed, 110 * time.Second,
		},
		{
			"past max_runtime, 1 ms before the floor ends", lease(beatAt(50*time.Second), runs(55*time.Second)),
			100*time.Second - ms, after(40 * time.Second), "", 110 * time.Second,
		},
		{
			"past max_runtime, when the floor ends", lease(beatAt(50*time.Second), runs(55*time.Second)),
			100 * time.Second, after(40 * time.Second), OutcomeFailed, 110 * time.Second,
		},
		{
			"past max_runtime, while watched", lease(beatAt(50*time.Second), runs(55*time.Second), watched),
			90*time.Second - ms, long, "", 110 * time.Second,
		},
		{
			"past max_runtime, at watch_until", lease(beatAt(50*time.Second), runs(55*time.Second), watched),
			90 * time.Second, long, OutcomeFailed, 110 * time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := after(c.now)
			s := Serving{LastBeat: now, Since: c.floor}
			if got := Over(c.lease, now, s); got != c.outcome {
				t.Errorf("the lease ended %q, want %q", got, c.outcome)
			}
			same(t, "the effective end", Effective(c.lease, now, s), after(c.end))
		})
	}
}

func TestNothingLapsesWhileNoNodeServes(t *testing.T) {
	for _, c := range []struct {
		name string
		last time.Duration // of LastBeat, from now
		want Outcome
	}{
		{"served 1 s ago", -time.Second, OutcomeExpired},
		{"served 1 s + 1 ms ago", -time.Second - time.Millisecond, ""},
		{"served 1 s ahead, before the clock stepped back", time.Second, OutcomeExpired},
		{"served 1 s + 1 ms ahead, before the clock stepped back", time.Second + time.Millisecond, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := after(time.Hour)
			s := Serving{LastBeat: now.Add(c.last), Since: after(-time.Hour)}
			if got := Over(lease(), now, s); got != c.want {
				t.Errorf("a lease without beats for an hour ended %q, want %q", got, c.want)
			}
			spent := lease(func(h *Held) {
				h.MaxRuntime, h.BeatAt, h.ExpiresAt = time.Minute, now, now.Add(time.Minute)
			})
			if got := Over(spent, now, s) != ""; got != (c.want != "") {
				t.Errorf("a lease past max_runtime is over: %v, want %v", got, c.want != "")
			}
		})
	}
}

func TestRuntimeEndIsNeverWithoutALimit(t *testing.T) {
	if end := runtimeEnd(lease(), start, served(start)); end != 0 {
		t.Errorf("a lease without max_runtime_s ends at %s, want never", end)
	}
}

func TestNextLookIsWhenALeaseMayFirstBeOver(t *testing.T) {
	s := served(start)
	for _, c := range []struct {
		name    string
		runtime time.Duration
		want    time.Duration
	}{
		{"no limit", 0, time.Minute},
		{"runtime ends before the ttl", time.Minute - time.Millisecond, time.Minute - time.Millisecond},
		{"runtime ends after the ttl", time.Minute + time.Millisecond, time.Minute},
	} {
		h := lease(func(h *Held) { h.MaxRuntime = c.runtime })
		same(t, c.name+": the next look", ExpiryCheck(h, start, s), after(c.want))
	}
}

// TestWatchedLeaseIsLookedAtEachSecond: a watch, and nothing else that keeps a lease, can become shorter.
func TestWatchedLeaseIsLookedAtEachSecond(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name                     string
		watch, runtime, at, look time.Duration
	}{
		{"the watch ends before the ttl", time.Minute - ms, 0, 0, time.Minute},
		{"the watch keeps the lease", 5 * time.Minute, 0, 2 * time.Minute, 2*time.Minute + time.Second},
		{"the watch has half a second left", 5 * time.Minute, 0, 5*time.Minute - 500*ms, 5 * time.Minute},
		{"the watch keeps it past its runtime", 50 * time.Second, time.Second, 0, time.Second},
		{"the runtime ends after the watch", 30 * time.Second, 40 * time.Second, 0, 40 * time.Second},
	} {
		h := lease(func(h *Held) { h.WatchUntil, h.MaxRuntime = after(c.watch), c.runtime })
		s := Serving{LastBeat: after(c.at), Since: after(-time.Hour)}
		same(t, c.name+": the next look", ExpiryCheck(h, after(c.at), s), after(c.look))
	}
}

// TestLeaseFromBeforeAStepBackKeepsItsEnd: the verdict on it does not change when the clock comes to its last beat
// again.
func TestLeaseFromBeforeAStepBackKeepsItsEnd(t *testing.T) {
	const ms = time.Millisecond
	s := Serving{LastBeat: start, Since: start} // the clock stepped back to start
	for _, c := range []struct {
		name  string
		beat  time.Duration // ahead of now
		right bool
		end   time.Duration
		look  time.Duration
	}{
		{"heartbeat 2 s ahead", 2 * time.Second, false, 62 * time.Second, 62 * time.Second},
		{"heartbeat 2 s + 1 ms ahead", 2*time.Second + ms, true, time.Minute, 0},
		{"heartbeat half a minute ahead", 30 * time.Second, true, time.Minute, 0},
		{"heartbeat just now", 0, false, time.Minute, time.Minute},
	} {
		h := lease(func(h *Held) { h.BeatAt, h.ExpiresAt = after(c.beat), after(c.beat+time.Minute) })
		same(t, c.name+": the next look", ExpiryCheck(h, start, s), after(c.look))
		if got := SetRight(h, start, s); got != c.right {
			t.Errorf("%s: it was set right: %v, want %v", c.name, got, c.right)
		}
		for _, at := range []time.Duration{0, c.beat, c.end - ms} {
			s.LastBeat = after(at)
			if got := Over(h, after(at), s); got != "" {
				t.Errorf("%s: after %v it has ended %q, want at %v", c.name, at, got, c.end)
			}
		}
		s.LastBeat = after(c.end)
		same(t, c.name+": at its end", Over(h, after(c.end), s), OutcomeExpired)
	}
}

func TestTouchRefusesGoneThenOverThenAnothers(t *testing.T) {
	over := after(time.Minute)
	cancelled := lease(func(h *Held) { h.CancelAt = after(time.Second) })
	for _, c := range []struct {
		name   string
		lease  *Held
		worker string
		now    lessor.Instant
		want   error
		reason string
	}{
		{"the holder of a live lease", lease(), "w1", over - 1, nil, ""},
		{"another worker on a live lease", lease(), "w2", over - 1, lessor.ErrWorkerMismatch, ""},
		{"the holder of a lapsed lease", lease(), "w1", over, lessor.ErrLeaseNotFound, "expired"},
		{"another worker on a lapsed lease: 404 before 403", lease(), "w2", over, lessor.ErrLeaseNotFound, "expired"},
		{"a lease that is gone", nil, "w1", start, lessor.ErrLeaseNotFound, ""},
		{"a lease past max_runtime", lease(func(h *Held) {
			h.MaxRuntime = time.Second
		}), "w1", after(time.Second), lessor.ErrLeaseNotFound, "failed"},
		{"a lapsed lease under a cancel request", cancelled, "w1", over, lessor.ErrLeaseNotFound, "cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Touch(c.lease, by(c.worker), c.now, served(c.now))
			if !errors.Is(err, c.want) {
				t.Fatalf("answer is %v, want %v", err, c.want)
			}
			var e *lessor.Error
			if errors.As(err, &e) && e.EndedReason != c.reason {
				t.Errorf("ended_reason is %q, want %q", e.EndedReason, c.reason)
			}
		})
	}
}

func TestBeatExtendsAndNeverShortens(t *testing.T) {
	for _, c := range []struct {
		name  string
		lease *Held
		ttl   time.Duration
		now   time.Duration
		floor time.Duration
		ends  time.Duration // effective, after the beat
		left  time.Duration // ttl after the beat
	}{
		{"same ttl", lease(), 0, 10 * time.Second, -time.Hour, 70 * time.Second, time.Minute},
		{"at the instant of the grant", lease(), 0, 0, -time.Hour, time.Minute, time.Minute},
		{"in the last millisecond", lease(), 0, time.Minute - 1e6, -time.Hour, 2*time.Minute - 1e6, time.Minute},
		{"longer ttl", lease(), 2 * time.Minute, 10 * time.Second, -time.Hour, 130 * time.Second, 2 * time.Minute},
		{
			"shorter ttl that would end sooner", lease(), 49 * time.Second, 10 * time.Second, -time.Hour, time.Minute,
			49 * time.Second,
		},
		{
			"shorter ttl that ends later", lease(), 51 * time.Second, 10 * time.Second, -time.Hour, 61 * time.Second,
			51 * time.Second,
		},
		{
			"shorter ttl under a floor that promised more", lease(), time.Second, 10 * time.Second, 5 * time.Second,
			65 * time.Second, time.Second,
		},
		{
			"on a clock that stepped back an hour", lease(func(h *Held) {
				h.BeatAt, h.ExpiresAt = after(time.Hour), after(61*time.Minute)
			}),
			0, 10 * time.Second, 9 * time.Second, 70 * time.Second, time.Minute,
		},
		{
			"on a clock that stepped back half a second", lease(func(h *Held) {
				h.BeatAt, h.ExpiresAt = after(10500*time.Millisecond), after(70500*time.Millisecond)
			}),
			0, 10 * time.Second, -time.Hour, 70500 * time.Millisecond, time.Minute,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, h := after(c.now), c.lease
			s := Serving{LastBeat: now, Since: after(c.floor)}
			if err := Beat(h, by("w1"), c.ttl, now, s); err != nil {
				t.Fatalf("the beat was refused: %v", err)
			}
			same(t, "the effective end", Effective(h, now, s), after(c.ends))
			same(t, "the ttl", h.TTL, c.left)
			same(t, "the last beat", h.BeatAt, now)
		})
	}
}

func TestFirstBeatAloneTurnsLeasedIntoRunning(t *testing.T) {
	h := lease()
	same(t, "the state before any beat", h.State(), lessor.Leased)
	for _, d := range []time.Duration{time.Second, 2 * time.Second} {
		if err := Beat(h, by("w1"), 0, after(d), served(after(d))); err != nil {
			t.Fatalf("the beat after %v was refused: %v", d, err)
		}
		same(t, "the state after a beat", h.State(), lessor.Running)
		same(t, "the first beat", h.FirstBeatAt, after(time.Second))
	}
}

func TestRefusedBeatChangesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		worker string
		now    lessor.Instant
	}{
		{"another worker's", "w2", after(time.Second)},
		{"too late", "w1", after(time.Minute)},
	} {
		h := lease()
		if err := Beat(h, by(c.worker), time.Hour, c.now, served(c.now)); err == nil {
			t.Errorf("%s: the beat was accepted", c.name)
		}
		same(t, c.name+": the lease after a refused beat", h, lease())
	}
}

func TestGrantCountsTheAttemptAndRaisesTheFence(t *testing.T) {
	spec := &Spec{ID: jobID(1), Lane: Lane{Tenant: tenantID(4), LockKey: "door", Units: 3}, MaxRuntime: time.Hour}
	for _, c := range []struct {
		name        string
		last, fence int64
	}{
		{"never leased", 0, int64(start)},
		{"last fence 1 ms ago", int64(start) - 1, int64(start)},
		{"last fence in the same millisecond", int64(start), int64(start) + 1},
		{"last fence an hour ahead: the clock went back", int64(after(time.Hour)), int64(after(time.Hour)) + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			turn := Turn{
				Job: jobID(1), Lane: 7, Seq: 9, Attempt: 2, MaxAttempts: 5, Interruptions: 1, Fence: c.last,
				Steps: 6, QueuedAt: after(-time.Second),
			}
			want := &Held{
				ID: leaseID(8), Turn: turn, Tenant: tenantID(4), LockKey: "door", Units: 3, Worker: "w1",
				MaxRuntime: time.Hour, IssuedAt: start,
				Life: Life{TTL: time.Minute, BeatAt: start, ExpiresAt: after(time.Minute)},
			}
			want.Turn.Attempt, want.Turn.Fence, want.Turn.Steps = 3, c.fence, 7
			same(t, "the new lease", Grant(leaseID(8), turn, spec, "w1", time.Minute, start), want)
		})
	}
}

func TestPaceLeavesRoomForTwoLostBeats(t *testing.T) {
	same(t, "the pace of a ttl of 60 s", Pace(time.Minute), 20*time.Second)
}

func TestFencedPassesTheFloor(t *testing.T) {
	for name, c := range map[string]struct{ last, floor, now, want int64 }{
		"no floor":             {last: 5, now: 100, want: 100},
		"clock above floor":    {last: 5, floor: 99, now: 101, want: 101},
		"clock at the floor":   {last: 5, floor: 100, now: 100, want: 101},
		"clock below floor":    {last: 5, floor: 200, now: 100, want: 201},
		"last above the floor": {last: 300, floor: 200, now: 100, want: 301},
	} {
		turn := Fenced(Turn{Fence: c.last}, Serving{Fence: c.floor})
		got := Grant(lessor.LeaseID{}, turn, &Spec{}, "w", time.Minute, lessor.Instant(c.now)).Turn.Fence
		if got != c.want {
			t.Errorf("%s: fence %d, want %d", name, got, c.want)
		}
	}
}

// TestLeaseWithHeartbeatsOutlivesAStepBackThatIsNotNoted: until service is noted on the new clock, the floor is that of
// the old.
func TestLeaseWithHeartbeatsOutlivesAStepBackThatIsNotNoted(t *testing.T) {
	const every = 20 * time.Millisecond
	for step := every; step <= 3*time.Second; step += every {
		for noted := time.Duration(0); noted <= maxGap; noted += every {
			h := lease(func(h *Held) { h.MaxRuntime = time.Minute })
			now := start.Add(-step)
			served := Serving{LastBeat: start.Add(-noted), Since: after(-time.Hour)}
			s := Serve(served, ClockReading{}, ClockReading{Wall: now})
			if got := Over(h, now, s); got != "" {
				t.Fatalf("a lease granted %v after the last note, before the clock stepped back by %v, is over: %s",
					noted, step, got)
			}
		}
	}
}
