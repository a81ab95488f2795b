package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lessor"
)

// every returns a definition that ticks at an interval, stored at after(0).
func every(t testing.TB, seconds int, changes string) *Definition {
	t.Helper()
	d := define(t, strings.Replace(changes, "{",
		fmt.Sprintf(`{"schedule": {"type": "interval", "seconds": %d},`, seconds), 1))
	Begin(d, utcTicks, after(0))
	return d
}

// rowsText returns rows in short: the time since after(0), the outcome and its reason.
func rowsText(rows []TickRow) string {
	var words []string
	for _, r := range rows {
		w := fmt.Sprintf("%v %s", r.At.Sub(after(0)), r.Outcome)
		if r.Reason != "" {
			w += " " + r.Reason
		}
		if r.Outcome == lessor.TickMissed {
			w += fmt.Sprintf(" to %v, %d", r.To.Sub(after(0)), r.Count)
		}
		words = append(words, w)
	}
	return strings.Join(words, "; ")
}

func TestTicksFollowTheirPolicies(t *testing.T) {
	none := OpenRuns{}
	for name, c := range map[string]struct {
		changes string
		at      time.Duration
		open    OpenRuns
		circuit *Circuit
		want    string
		next    time.Duration
		cancel  bool
	}{
		"nothing is due": {`{"priority": "low"}`, 59 * time.Second, none, nil, "", time.Minute, false},
		"in time": {
			`{"priority": "low"}`, time.Minute, none, nil, "1m0s fired", 2 * time.Minute,
			false,
		},
		"as late as in time goes": {
			`{"priority": "low"}`, 70 * time.Second, none, nil, "1m0s fired",
			2 * time.Minute, false,
		},
		"late": {
			`{"priority": "low"}`, 70*time.Second + time.Millisecond, none, nil,
			"1m0s caughtUp", 2 * time.Minute, false,
		},
		"latest of three": {
			`{"priority": "low"}`, 3 * time.Minute, none, nil,
			"1m0s skipped superseded; 2m0s skipped superseded; 3m0s fired", 4 * time.Minute, false,
		},
		"none of the late": {
			`{"catchUp": "none"}`, 2*time.Minute + time.Second, none, nil,
			"1m0s skipped late; 2m0s fired", 3 * time.Minute, false,
		},
		"all": {
			`{"catchUp": "all", "overlap": "allow"}`, 2*time.Minute + time.Second, none, nil,
			"1m0s caughtUp; 2m0s fired", 3 * time.Minute, false,
		},
		"all, one at a time": {
			`{"catchUp": "all"}`, 2*time.Minute + time.Second, none, nil,
			"1m0s caughtUp; 2m0s skipped overlap", 3 * time.Minute, false,
		},
		"before the window": {
			`{"catchUpWindowSeconds": 60}`, 5 * time.Minute, none, nil,
			"1m0s missed to 3m0s, 3; 4m0s skipped superseded; 5m0s fired", 6 * time.Minute, false,
		},
		"just inside the window": {
			`{"catchUpWindowSeconds": 240, "catchUp": "none"}`, 5 * time.Minute, none, nil,
			"1m0s skipped late; 2m0s skipped late; 3m0s skipped late; 4m0s skipped late; 5m0s fired", 6 * time.Minute,
			false,
		},
		"skip while one runs": {
			`{"priority": "low"}`, time.Minute,
			OpenRuns{Others: 1},
			nil,
			"1m0s skipped overlap", 2 * time.Minute, false,
		},
		"queueOne while one runs": {
			`{"overlap": "queueOne"}`, time.Minute,
			OpenRuns{Others: 1},
			nil, "1m0s fired",
			2 * time.Minute, false,
		},
		"queueOne while one waits": {
			`{"overlap": "queueOne"}`, time.Minute,
			OpenRuns{Waiting: 1},
			nil,
			"1m0s skipped overlap", 2 * time.Minute, false,
		},
		"allow while many do": {
			`{"overlap": "allow"}`, time.Minute,
			OpenRuns{Waiting: 9, Others: 9},
			nil,
			"1m0s fired", 2 * time.Minute, false,
		},
		"cancel the one before": {
			`{"overlap": "cancelPrevious"}`, time.Minute,
			OpenRuns{Others: 1},
			nil,
			"1m0s fired", 2 * time.Minute, true,
		},
		"cancel nothing": {
			`{"overlap": "cancelPrevious"}`, time.Minute, none, nil, "1m0s fired",
			2 * time.Minute, false,
		},
		"open circuit": {
			`{"priority": "low"}`, time.Minute, none,
			&Circuit{
				State:   lessor.CircuitOpen,
				RetryAt: after(61 * time.Second),
			}, "1m0s circuitOpen", 2 * time.Minute, false,
		},
		"open circuit, time to try": {
			`{"priority": "low"}`, time.Minute, none,
			&Circuit{
				State:   lessor.CircuitOpen,
				RetryAt: after(60 * time.Second),
			}, "1m0s fired", 2 * time.Minute, false,
		},
		"half open circuit": {
			`{"priority": "low"}`, time.Minute, none,
			&Circuit{State: lessor.CircuitHalfOpen, RetryAt: after(0)}, "1m0s circuitOpen", 2 * time.Minute, false,
		},
		"closed circuit that failed": {
			`{"priority": "low"}`, time.Minute, none, &Circuit{Failures: 4}, "1m0s fired",
			2 * time.Minute, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := every(t, 60, c.changes)
			p := Ticks(d, utcTicks(d), c.circuit, c.open, after(c.at))
			same(t, "rows", rowsText(p.Rows), c.want)
			same(t, "next tick", d.NextTick, after(c.next))
			same(t, "cancel", p.Cancel, c.cancel)
		})
	}
}

func TestCronTicksBeforeTheWindowAreOneRow(t *testing.T) {
	d := define(t, `{"schedule": {"type": "cron", "cron": "*/10 * * * *"}, "catchUpWindowSeconds": 600}`)
	start := lessor.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	Begin(d, utcTicks, start)
	p := Ticks(d, utcTicks(d), nil, OpenRuns{}, start.Add(40*time.Minute+time.Second))
	if len(p.Rows) != 2 || p.Rows[0].Count != 3 || p.Rows[0].To != start.Add(30*time.Minute) ||
		p.Rows[1].At != start.Add(40*time.Minute) {
		t.Errorf("got %s", rowsText(p.Rows))
	}
}

func TestCatchUpOfAllIsBounded(t *testing.T) {
	d := every(t, 1, `{"catchUp": "all", "overlap": "allow"}`)
	now := after(1500 * time.Second)
	fired, skipped := 0, 0
	for passes := 0; d.DueAt <= now; passes++ {
		if passes == 3 {
			t.Fatal("the list is never done")
		}
		p := Ticks(d, utcTicks(d), nil, OpenRuns{}, now)
		if len(p.Rows) > maxTickRows {
			t.Fatalf("%d rows at once", len(p.Rows))
		}
		for _, r := range p.Rows {
			if r.Ran() {
				fired++
			} else {
				same(t, "reason", r.Reason, TickOverLimit)
				skipped++
			}
		}
	}
	if fired != 1000 || skipped != 500 {
		t.Errorf("%d fired and %d skipped, want 1000 and 500", fired, skipped)
	}
}

func TestJitterDelaysATickButKeepsItsTime(t *testing.T) {
	d := every(t, 3600, `{"jitterSeconds": 600}`)
	delay := d.DueAt.Sub(d.NextTick)
	if delay <= 0 || delay > 600*time.Second {
		t.Fatalf("delayed by %v", delay)
	}
	if p := Ticks(d, utcTicks(d), nil, OpenRuns{}, d.DueAt-1); len(p.Rows) != 0 {
		t.Errorf("fired %v too early", rowsText(p.Rows))
	}
	p := Ticks(d, utcTicks(d), nil, OpenRuns{}, d.DueAt)
	same(t, "rows", rowsText(p.Rows), "1h0m0s fired")
}

// TestEveryTickThatIsNoticedInTimeFires looks at a definition a millisecond after each tick is due, with the smallest
// windows and with jitter of any length.
func TestEveryTickThatIsNoticedInTimeFires(t *testing.T) {
	for _, changes := range []string{
		`{"catchUpWindowSeconds": 0}`,
		`{"jitterSeconds": 4, "catchUpWindowSeconds": 2}`,
		`{"jitterSeconds": 600, "catchUpWindowSeconds": 60, "catchUp": "none"}`,
		`{"jitterSeconds": 86400, "catchUpWindowSeconds": 0, "catchUp": "none"}`,
	} {
		d := every(t, 20, strings.Replace(changes, "{", `{"overlap": "allow",`, 1))
		for range 100 {
			at := d.NextTick
			p := Ticks(d, utcTicks(d), nil, OpenRuns{}, d.DueAt.Add(time.Millisecond))
			same(t, changes, rowsText(p.Rows), fmt.Sprintf("%v fired", at.Sub(after(0))))
		}
	}
}

// TestEveryTickGetsOneRow walks a definition through random times of attention, clocks that step back among them, and
// checks that every tick up to the last of them is counted once: by a row of its own or by one that counts it as
// missed.
func TestEveryTickGetsOneRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.SampledFrom([]int{1, 7, 60, 3600}).Draw(t, "seconds")
		d := &Definition{
			ID: "tick", Schedule: lessor.Schedule{Type: lessor.ScheduleInterval, Seconds: int64(seconds)},
			Enabled: true,
			CatchUp: rapid.SampledFrom([]lessor.CatchUp{
				lessor.CatchUpAll, lessor.CatchUpLatest,
				lessor.CatchUpNone,
			}).Draw(t, "catch up"),
			Overlap: lessor.OverlapAllow, CatchUpWindow: time.Duration(rapid.IntRange(0, 7200).Draw(t,
				"window")) * time.Second,
			Jitter: time.Duration(rapid.IntRange(0, 100).Draw(t, "jitter")) * time.Second,
		}
		Begin(d, utcTicks, after(0))
		next, now, counted := d.NextTick, after(0), int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.Int64Range(-86_400_000, 90_000_000).Draw(t, "step")) * time.Millisecond)
			for again := true; again; again = d.DueAt <= now {
				for _, r := range Ticks(d, utcTicks(d), nil, OpenRuns{}, now).Rows {
					if r.At != next {
						t.Fatalf("the row of %s follows, want %s", r.At, next)
					}
					count := max(1, r.Count)
					counted += count
					next += lessor.Instant(count) * lessor.Instant(seconds) * 1000
				}
			}
			if d.NextTick != next {
				t.Fatalf("the next tick is %s, want %s", d.NextTick, next)
			}
		}
		first := after(time.Duration(seconds) * time.Second)
		if next != first+lessor.Instant(counted)*lessor.Instant(seconds)*1000 {
			t.Fatalf("%d ticks have rows up to %s", counted, next)
		}
	})
}

func TestTickSpecIsTheDefinitionsJob(t *testing.T) {
	d := every(t, 60, `{"requestedUnits": 3, "fairnessClass": "bulk", "payload": {"a": 1}, "timeoutSeconds": 9,
		"maxAttempts": 2}`)
	same(t, "the job", TickSpec(d, after(time.Minute)), &Spec{
		Lane: Lane{
			Tenant: tenantID(4), Class: "bulk", Priority: lessor.Normal, Type: "ledger.post", Units: 3,
			LockKey: "ledger", Definition: "ledger.nightly",
		},
		Payload: []byte(`{"a":1}`), MaxRuntime: 9 * time.Second, MaxAttempts: 2, BackoffFirst: time.Second,
		BackoffMax: 5 * time.Minute,
		TickAt:     after(time.Minute), Actor: ActorScheduler,
	})
}

func TestShownTickHasItsRun(t *testing.T) {
	run := lessor.JobID{UUID: lessor.UUID{7}}
	same(t, "fired", ShowTick(&TickRow{At: after(0), Outcome: lessor.TickFired, Run: run}),
		lessor.Tick{TickAt: after(0), Outcome: lessor.TickFired, RunID: &run, Count: 1})
	reason := TickOverlap
	same(t, "skipped", ShowTick(&TickRow{At: after(0), Outcome: lessor.TickSkipped, Reason: reason}),
		lessor.Tick{TickAt: after(0), Outcome: lessor.TickSkipped, Reason: &reason, Count: 1})
}

func TestPreviewAndBackfill(t *testing.T) {
	d := every(t, 60, `{"priority": "low"}`)
	same(t, "preview", Preview(utcTicks(d), after(30*time.Second), 2),
		[]lessor.Instant{after(time.Minute), after(2 * time.Minute)})
	never := func(lessor.Instant) lessor.Instant { return 0 }
	same(t, "preview of one that never fires", Preview(never, after(0), 2), []lessor.Instant{})

	now := after(24 * time.Hour)
	ticks, err := Backfill(utcTicks(d), after(time.Minute), after(3*time.Minute), now)
	same(t, "both ends count", fmt.Sprint(len(ticks), err), "3 <nil>")
	for want, r := range map[string][2]lessor.Instant{
		"to: must not be before from (" + after(time.Minute).String() +
			")": {after(time.Minute), after(0)},
		"to: must not be in the future; ticks to come fire by themselves": {
			after(0),
			now + 1,
		},
		"to: at most 1000 ticks at once; " + after(1000*time.Minute).String() +
			" is the last that fits": {after(0), now},
	} {
		_, err := Backfill(utcTicks(d), r[0], r[1], now)
		same(t, "refusal", firstField(err), want)
	}
}

func TestRefillGivesJobsToTicksWithoutOne(t *testing.T) {
	d := every(t, 60, `{"priority": "low"}`)
	known := []TickRow{{At: 1, Outcome: lessor.TickFired}, {At: 2, Outcome: lessor.TickSkipped, Reason: TickOverlap}}
	fresh, replaced := Refill(d, []lessor.Instant{1, 2, 3}, known)
	same(t, "fresh", fresh, []TickRow{{
		Definition: d.ID, Tenant: d.Tenant, At: 3, Outcome: lessor.TickCaughtUp,
		Reason: TickBackfill,
	}})
	same(t, "replaced", replaced, []TickRow{{At: 2, Outcome: lessor.TickCaughtUp, Reason: TickBackfill}})
}

func TestUnreadableCronNeverTicks(t *testing.T) {
	d := &Definition{Schedule: lessor.Schedule{Type: lessor.ScheduleCron, Cron: "not one"}}
	same(t, "next", TickerOf(d, time.UTC)(after(0)), 0)
}
