package rules

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLeasesKeepTheirPromises holds, for random histories with stalls, restarts, steps of the clock and the brake: one
// live lease a job and rising fences (P3), a lease that is over changes nothing (P4), none ends early (P5), attempts
// are bounded (P9).
func TestLeasesKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		newMachine(rt).live(400, func(*job) {}, life, trouble)
	})
}

// TestSilentLeasesEndInTime holds that without the brake no lease outlives its end by more than two seconds (P6).
func TestSilentLeasesEndInTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt)
		m.brake.Min = 1 << 30
		m.live(400, func(*job) {}, life, trouble)
		m.pass(time.Minute)
		for _, j := range m.jobs {
			if j.place == Leased && m.mono >= m.oracle.end(j)+2*time.Second {
				rt.Fatalf("the lease of job %s still lives %v after its end", j.spec.ID, m.mono-m.oracle.end(j))
			}
		}
	})
}

// TestDeadLeasesEndDespiteTheBrake lets a thousand workers fall silent together: each gets one more ttl from the brake,
// and then, from the second after it, all are ended, 200 a second, also those that asked for a longer ttl than the
// default.
func TestDeadLeasesEndDespiteTheBrake(t *testing.T) {
	for _, c := range []struct {
		name  string
		ttls  []time.Duration
		pulls int
		end   time.Duration
	}{
		{"the default ttl", []time.Duration{time.Minute}, 1, 2*time.Minute + 6*time.Second},
		{"a longer ttl", []time.Duration{5 * time.Minute}, 1, 10*time.Minute + 6*time.Second},
		// The second brake is for the longer ones, which were not silent at the first and lapse 5 min after it.
		{"both", []time.Duration{time.Minute, 5 * time.Minute}, 2, 11*time.Minute + 4*time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			pulls, end := silentWorkers(t, 1000, c.ttls)
			if pulls != c.pulls || end > c.end {
				t.Errorf("the brake was pulled %d times and the last lease ended after %v; want %d times, %v", pulls,
					end, c.pulls, c.end)
			}
		})
	}
}

// silentWorkers grants leases to as many workers, none of which ever beats, and sweeps each second until all are ended.
func silentWorkers(t *testing.T, workers int, ttls []time.Duration) (pulls int, end time.Duration) {
	t.Helper()
	live := make([]*Held, workers)
	for i := range live {
		ttl := ttls[i%len(ttls)]
		live[i] = lease(func(h *Held) { h.Worker, h.TTL, h.ExpiresAt = fmt.Sprintf("w%d", i), ttl, after(ttl) })
	}
	s := served(start)
	for ; len(live) > 0 && end < time.Hour; end += time.Second {
		now := after(end)
		s.LastBeat = now
		var c Silence
		for _, h := range live {
			c.Count(h, now, s)
		}
		next, allowed, pulled := Brake(c, s, now, time.Second, brakeConfig)
		s = next
		if pulled {
			pulls++
		}
		if pulls > 0 && allowed > brakeConfig.Rate {
			t.Fatalf("after %v %d leases may be ended in one second, at most %d after a brake", end, allowed,
				brakeConfig.Rate)
		}
		live = slices.DeleteFunc(live, func(h *Held) bool {
			if allowed == 0 || Over(h, now, s) == "" {
				return false
			}
			allowed--
			return true
		})
	}
	return pulls, end
}
