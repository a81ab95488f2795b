package rules

import (
	"fmt"
	"testing"
	"time"

	"lessor"
)

func TestFloorMovesAfterAGapOrAStep(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name       string
		wall, mono time.Duration // since the last reading
		first      bool          // no reading before: a start
		moves      bool
	}{
		{"the usual quarter of a second", 250 * ms, 250 * ms, false, false},
		{"a gap of exactly 1 s", time.Second, time.Second, false, false},
		{"a gap of 1 s + 1 ms", time.Second + ms, time.Second + ms, false, true},
		{"the clock steps forward by exactly 1 s", time.Second, 0, false, false},
		{"the clock steps forward by 1 s + 1 ms", time.Second + ms, 0, false, true},
		{"the clock steps back by exactly 1 s", -time.Second, 0, false, false},
		{"the clock steps back by 1 s + 1 ms", -time.Second - ms, 0, false, true},
		{"a step back of 1 s hidden by the time that passed", -500 * ms, 500 * ms, false, false},
		{"a step back of 1 s + 1 ms hidden by the time that passed", -501 * ms, 500 * ms, false, true},
		{"a stall of 1 s + 1 ms that the wall clock did not see", 0, time.Second + ms, false, true},
		{"a start within 1 s of the last service", time.Second, 0, true, false},
		{"a start 1 s + 1 ms after the last service", time.Second + ms, 0, true, true},
		{"a start 1 s before the last service: the clock was set back meanwhile", -time.Second, 0, true, false},
		{"a start 1 s + 1 ms before the last service", -time.Second - ms, 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			last := ClockReading{Wall: start, Mono: time.Hour}
			now := ClockReading{Wall: after(c.wall), Mono: time.Hour + c.mono}
			if c.first {
				last = ClockReading{}
			}
			want := Serving{LastBeat: now.Wall, Since: after(-time.Hour)}
			if c.moves {
				want.Since = now.Wall
			}
			same(t, "serving", Serve(served(start), last, now), want)
		})
	}
}

func TestNodeThatBeginsShowsNoService(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		wall  time.Duration // since the last beat
		moves bool
	}{
		{"half a second after the last beat", 500 * ms, false},
		{"501 ms after it", 501 * ms, true},
		{"an hour after it", time.Hour, true},
		{"half a second before it, since the clock was set back", -500 * ms, false},
		{"501 ms before it", -501 * ms, true},
	} {
		want := Serving{LastBeat: start, Since: after(-time.Hour)}
		if c.moves {
			want.LastBeat, want.Since = after(c.wall), after(c.wall)
		}
		same(t, "serving of a node that begins "+c.name, BeginToServe(served(start), after(c.wall)), want)
	}
	pulled := served(start)
	pulled.BrakeUntil, pulled.LapsedAt = after(time.Minute), after(time.Minute)
	want := Serving{LastBeat: after(-time.Hour), Since: after(-time.Hour)}
	same(t, "serving of a node that begins an hour before the last beat", BeginToServe(pulled, after(-time.Hour)), want)
}

func TestStepBackForgetsTheBrake(t *testing.T) {
	pulled := served(start)
	pulled.BrakeUntil, pulled.LapsedAt = after(time.Minute), after(time.Minute)
	for _, c := range []struct {
		name  string
		wall  time.Duration
		keeps bool
	}{
		{"a step back of exactly 1 s", -time.Second, true},
		{"a step back of 1 s + 1 ms", -time.Second - time.Millisecond, false},
		{"a gap forward", time.Hour, true},
	} {
		got := Serve(pulled, ClockReading{Wall: start}, ClockReading{Wall: after(c.wall)})
		if kept := got.BrakeUntil != 0 && got.LapsedAt != 0; kept != c.keeps {
			t.Errorf("%s: the brake is remembered: %v, want %v", c.name, kept, c.keeps)
		}
	}
}

func TestSilenceCountsLeasesThatUsedTwoThirdsOfTheirTTL(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name           string
		lease          *Held
		now            time.Duration
		floor          time.Duration
		silent, lapsed int
	}{
		{"1 ms before two thirds", lease(), 40*time.Second - ms, -time.Hour, 0, 0},
		{"two thirds used", lease(), 40 * time.Second, -time.Hour, 1, 0},
		{"1 ms before its end", lease(), time.Minute - ms, -time.Hour, 1, 0},
		{"lapsed", lease(), time.Minute, -time.Hour, 1, 1},
		{"two thirds used, but the floor moved", lease(), 40 * time.Second, ms, 0, 0},
		{"lapsed, but watched", lease(func(h *Held) {
			h.WatchUntil = after(time.Hour)
		}), time.Minute, -time.Hour, 0, 0},
	} {
		var s Silence
		s.Count(c.lease, after(c.now), Serving{LastBeat: after(c.now), Since: after(c.floor)})
		same(t, c.name+": all, silent, lapsed", [3]int{s.All, s.Silent, s.Lapsed}, [3]int{1, c.silent, c.lapsed})
	}
}

var brakeConfig = BrakeConfig{SharePercent: 30, Min: 10, Rate: 200, TTL: time.Minute}

// silence counts leases at the moment the lapsed ones end: all in total, of which silent are held by workers, each in
// turn.
func silence(all, silent, lapsed, workers int) Silence {
	var s Silence
	now := after(time.Minute)
	for i := range all {
		h := lease(func(h *Held) { h.Worker = fmt.Sprintf("w%d", i%max(1, workers)) })
		switch {
		case i >= silent:
			h.Worker, h.ExpiresAt = "lively", now.Add(time.Minute)
		case i >= lapsed:
			h.ExpiresAt = now + 1
		}
		s.Count(h, now, served(now))
	}
	return s
}

func TestBrakeIsPulledOnlyByMassSilence(t *testing.T) {
	now := after(time.Minute)
	for _, c := range []struct {
		name                        string
		all, silent, lapsed, worker int
		pulled                      bool
	}{
		{"10 silent leases", 10, 10, 10, 3, true},
		{"9 silent leases", 9, 9, 9, 3, false},
		{"31 % of all", 100, 31, 1, 3, true},
		{"30 % of all", 100, 30, 1, 3, false},
		{"3 workers", 10, 10, 10, 3, true},
		{"2 workers", 10, 10, 10, 2, false},
		{"all silent, one lapsed", 10, 10, 1, 3, true},
		{"all silent, none lapsed", 10, 10, 0, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := served(now)
			next, allowed, pulled := Brake(silence(c.all, c.silent, c.lapsed, c.worker), s, now, time.Second,
				brakeConfig)
			if pulled != c.pulled {
				t.Fatalf("the brake was pulled: %v, want %v", pulled, c.pulled)
			}
			want, may := s, c.lapsed
			if c.pulled {
				want = Serving{LastBeat: now, Since: now, BrakeUntil: now.Add(time.Minute), LapsedAt: next.LapsedAt}
				may = 0
			}
			same(t, "serving", next, want)
			same(t, "how many may be ended", allowed, may)
		})
	}
}

// TestBrakeTellsWorkersOfTenantsApart: workers of different tenants may have the same name.
func TestBrakeTellsWorkersOfTenantsApart(t *testing.T) {
	now := after(time.Minute)
	for _, c := range []struct {
		name   string
		bound  bool
		pulled bool
	}{
		{"w1 of each of three tenants", true, true},
		{"one w1 that works for three tenants", false, false},
	} {
		var s Silence
		for i := range byte(12) {
			s.Count(lease(func(h *Held) {
				h.Tenant, h.Worker, h.Bound = lessor.TenantID{UUID: lessor.UUID{i % 3}}, "w1", c.bound
			}), now, served(now))
		}
		if _, _, pulled := Brake(s, served(now), now, time.Second, brakeConfig); pulled != c.pulled {
			t.Errorf("%s: the brake was pulled: %v, want %v", c.name, pulled, c.pulled)
		}
	}
}

func TestBrakeUntilIsWhenTheLongestSilentLeaseMayLapse(t *testing.T) {
	now := after(time.Minute)
	c := silence(20, 20, 20, 3)
	c.Count(lease(func(h *Held) { h.TTL = time.Hour }), now, served(now))
	next, _, pulled := Brake(c, served(now), now, time.Second, brakeConfig)
	if !pulled {
		t.Fatal("the brake was not pulled")
	}
	same(t, "brake_until", next.BrakeUntil, now.Add(time.Hour))
}

// TestBrakeComesOnce follows the same silent leases through the brake to their end, and on until the brake is ready.
func TestBrakeComesOnce(t *testing.T) {
	const ms = time.Millisecond
	mass := silence(1000, 1000, 1000, 3)
	s, _, pulled := Brake(mass, served(start), start, time.Second, brakeConfig)
	if !pulled {
		t.Fatal("1000 of 1000 leases lapsed and the brake was not pulled")
	}
	step := func(at time.Duration, elapsed time.Duration, want int, wantPulled bool, why string) {
		t.Helper()
		var allowed int
		s, allowed, pulled = Brake(mass, s, after(at), elapsed, brakeConfig)
		if allowed != want || pulled != wantPulled {
			t.Errorf("%s: ended %d, pulled %v; want %d, %v", why, allowed, pulled, want, wantPulled)
		}
	}
	step(time.Minute, time.Second, 1, false, "at the end of the brake's floor, before which none could lapse")
	step(time.Minute+500*ms, 0, 1, false, "a late call between two sweeps")
	step(61*time.Second, time.Second, 200, false, "whoever stayed silent over the brake's floor, after 1 s")
	step(61*time.Second+250*ms, 250*ms, 50, false, "a quarter of a second later")
	step(63*time.Second, time.Hour, 200, false, "a sweep that comes late ends no more than one second's worth")
	step(63*time.Second, time.Second, 1, false, "two nodes that sweep in one millisecond")
	step(63*time.Second+time.Minute-ms, time.Second, 200, false, "1 ms less than one ttl without a lapse")
	step(63*time.Second+2*time.Minute-ms, time.Second, 0, true, "one ttl without a lapse")
}

// TestBrakeCountsTheSweepsOfAllNodes has four nodes sweep after the brake: together they end no more leases than one.
func TestBrakeCountsTheSweepsOfAllNodes(t *testing.T) {
	mass := silence(1000, 1000, 1000, 3)
	s, _, _ := Brake(mass, served(start), start, time.Second, brakeConfig)
	var allowed, ended int
	for at := time.Minute; at <= 65*time.Second; at += 250 * time.Millisecond {
		s, allowed, _ = Brake(mass, s, after(at), time.Second, brakeConfig) // each of the four, once a second
		ended += allowed
	}
	same(t, "leases that ended in five seconds, and one at the end of the brake's floor", ended, 5*brakeConfig.Rate+1)
}

func TestBrakeIsReadyOneTTLAfterItsFloorWhenNoLeaseLapsed(t *testing.T) {
	mass := silence(10, 10, 10, 3)
	for _, c := range []struct {
		at     time.Duration
		pulled bool
	}{
		{2*time.Minute - time.Millisecond, false},
		{2 * time.Minute, true},
	} {
		s, _, _ := Brake(mass, served(start), start, time.Second, brakeConfig)
		if _, _, pulled := Brake(mass, s, after(c.at), time.Second, brakeConfig); pulled != c.pulled {
			t.Errorf("%v after the first brake of leases with a ttl of 1 min it was pulled again: %v, want %v", c.at,
				pulled, c.pulled)
		}
	}
}

func TestBrakeSavesWorkersThatComeBack(t *testing.T) {
	now := after(time.Minute)
	s, _, _ := Brake(silence(10, 10, 10, 3), served(now), now, time.Second, brakeConfig)
	h := lease()
	if err := Beat(h, by("w1"), 0, now.Add(59*time.Second),
		Serving{LastBeat: now.Add(59 * time.Second), Since: s.Since}); err != nil {
		t.Errorf("a worker that came back under the brake lost its lease: %v", err)
	}
	if o := Over(h, now.Add(100*time.Second), Serving{LastBeat: now.Add(100 * time.Second), Since: s.Since}); o != "" {
		t.Errorf("the lease that came back ended %q", o)
	}
}
