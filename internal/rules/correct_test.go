package rules

import (
	"testing"
	"time"

	"lessor"
)

func TestStepBackIsOneOfMoreThanASecond(t *testing.T) {
	last := ClockReading{Wall: start, Mono: time.Hour}
	for _, c := range []struct {
		name       string
		wall, mono time.Duration
		want       bool
	}{
		{"both go on", time.Minute, time.Minute, false},
		{"a second behind", 59 * time.Second, time.Minute, false},
		{"more than a second behind", 59*time.Second - time.Millisecond, time.Minute, true},
		{"a day back", -24 * time.Hour, 0, true},
		{"a day ahead", 24 * time.Hour, 0, false},
	} {
		if got := SteppedBack(last, ClockReading{Wall: after(c.wall), Mono: time.Hour + c.mono}); got != c.want {
			t.Errorf("%s: stepped back %v, want %v", c.name, got, c.want)
		}
	}
	if SteppedBack(ClockReading{}, last) {
		t.Error("the first reading is taken for a step")
	}
}

func TestWaitThatBeganAheadIsCountedFromNow(t *testing.T) {
	const delay = 7 * time.Second
	for _, c := range []struct {
		name  string
		fence int64
		began time.Duration
		want  bool
	}{
		{"a day ahead", 1, 24 * time.Hour, true},
		{"more than a second ahead", 1, time.Second + time.Millisecond, true},
		{"a second ahead", 1, time.Second, false},
		{"an hour ago", 1, -time.Hour, false},
		{"a start time that was given", 0, 24 * time.Hour, false},
	} {
		turn, wait := Turn{Fence: c.fence, QueuedAt: after(c.began)}, Wait{Until: after(c.began + delay)}
		if got := CorrectWait(&turn, &wait, start); got != c.want {
			t.Errorf("%s: set right %v, want %v", c.name, got, c.want)
		}
		want := after(c.began + delay)
		if c.want {
			want = after(delay)
		}
		same(t, c.name, wait.Until, want)
		same(t, c.name, wait.Until.Sub(turn.QueuedAt), delay)
	}
}

func TestNextTickIsSetAgainWhenTheClockIsSetBack(t *testing.T) {
	next := func(d *Definition) Ticker { return TickerOf(d, time.UTC) }
	every := lessor.Schedule{Type: lessor.ScheduleInterval, Seconds: 5}
	minutes := lessor.Schedule{Type: lessor.ScheduleCron, Cron: "* * * * *"}
	minute := minutesAfter(start, next(&Definition{Schedule: minutes}))
	for _, c := range []struct {
		name       string
		schedule   lessor.Schedule
		tick, want lessor.Instant
	}{
		{"interval of tomorrow", every, after(24 * time.Hour), after(5 * time.Second)},
		{"interval a little too late", every, after(5*time.Second + time.Millisecond), after(5 * time.Second)},
		{"interval in time", every, after(5 * time.Second), after(5 * time.Second)},
		{"interval that is due", every, start, start},
		{"cron of tomorrow", minutes, minute.Add(24 * time.Hour), minute},
		{"cron in time", minutes, minute, minute},
		{"cron that is due", minutes, minute.Add(-time.Hour), minute.Add(-time.Hour)},
		{"none", every, 0, 0},
	} {
		d := &Definition{ID: "d", Schedule: c.schedule, Anchor: c.tick, Enabled: true}
		if d.setNextTick(c.tick, next(d)); c.tick == 0 {
			d.DueAt = 0
		}
		if got := CorrectNextTick(d, next, start); got != (c.tick != c.want) {
			t.Errorf("%s: aimed anew %v", c.name, got)
		}
		same(t, c.name, d.NextTick, c.want)
		same(t, c.name+", due", d.DueAt, c.want)
	}
}

func minutesAfter(at lessor.Instant, next Ticker) lessor.Instant { return next(at) }

func TestTicksWithARowArePassedOver(t *testing.T) {
	every := func(after lessor.Instant) lessor.Instant { return (after/10_000 + 1) * 10_000 }
	for _, c := range []struct {
		name         string
		decided      []lessor.Instant
		at, then     lessor.Instant
		window       time.Duration
		rows, missed int
	}{
		{"none decided", nil, 50_000, 10_000, time.Hour, 4, 0},
		{"the first decided", []lessor.Instant{10_000}, 50_000, 20_000, time.Hour, 3, 0},
		{"all decided", []lessor.Instant{10_000, 20_000, 30_000, 40_000}, 50_000, 0, time.Hour, 0, 0},
		{"one between", []lessor.Instant{20_000}, 50_000, 10_000, time.Hour, 3, 0},
		{"the next decided too", []lessor.Instant{30_000, 40_000, 50_000}, 60_000, 10_000, time.Hour, 2, 0},
		{"behind the window", []lessor.Instant{30_000}, 50_000, 10_000, 15 * time.Second, 2, 1},
	} {
		d := &Definition{
			ID: "d", Enabled: true, CatchUp: lessor.CatchUpAll, Overlap: lessor.OverlapAllow,
			CatchUpWindow: c.window,
		}
		d.setNextTick(10_000, every)
		plan := Ticks(d, Undecided(d, every, c.decided), &Circuit{}, OpenRuns{}, 45_000)
		same(t, c.name+": next", d.NextTick, c.at)
		same(t, c.name+": rows", len(plan.Rows), c.rows)
		if len(plan.Rows) > 0 {
			same(t, c.name+": first", plan.Rows[0].At, c.then)
			same(t, c.name+": missed", plan.Rows[0].Outcome == lessor.TickMissed, c.missed > 0)
		}
	}
}

func TestCircuitIsTriedAfterItsCooldownAtTheLatest(t *testing.T) {
	d := &Definition{Cooldown: time.Minute}
	for _, c := range []struct {
		state lessor.CircuitState
		retry time.Duration
		want  time.Duration
	}{
		{lessor.CircuitOpen, 24 * time.Hour, time.Minute},
		{lessor.CircuitOpen, time.Minute + time.Millisecond, time.Minute},
		{lessor.CircuitOpen, time.Minute, time.Minute},
		{lessor.CircuitHalfOpen, 24 * time.Hour, 24 * time.Hour},
	} {
		circuit := Circuit{State: c.state, OpenedAt: after(c.retry - time.Minute), RetryAt: after(c.retry)}
		if got := circuit.CorrectCooldown(d, start); got != (c.want != c.retry) {
			t.Errorf("%s until %v: changed %v", c.state, c.retry, got)
		}
		same(t, "retry", circuit.RetryAt, after(c.want))
	}
}

func TestWatchIsShortenedToOneTTL(t *testing.T) {
	for _, c := range []struct{ until, want time.Duration }{
		{24 * time.Hour, time.Minute},
		{time.Minute + time.Millisecond, time.Minute},
		{time.Minute, time.Minute},
		{-time.Hour, -time.Hour},
	} {
		h := lease(func(h *Held) { h.TTL, h.WatchUntil = time.Minute, after(c.until) })
		if got := CorrectWatch(h, start); got != (c.until != c.want) {
			t.Errorf("watch of %v: shortened %v", c.until, got)
		}
		same(t, "watch", h.WatchUntil, after(c.want))
	}
}

func TestRunningTimeThatBeganAheadIsCountedFromTheFloor(t *testing.T) {
	s := served(start)
	s.Since = start
	for _, c := range []struct{ issued, want time.Duration }{
		{24 * time.Hour, 10 * time.Minute},
		{2*time.Second + time.Millisecond, 10 * time.Minute},
		{2 * time.Second, 10*time.Minute + 2*time.Second},
		{-time.Minute, 9 * time.Minute},
	} {
		h := lease(func(h *Held) { h.TTL, h.MaxRuntime, h.IssuedAt = time.Minute, 10*time.Minute, after(c.issued) })
		same(t, "end of a lease issued after "+c.issued.String(), runtimeEnd(h, start, s), after(c.want))
	}
}
