package postgres

import (
	"fmt"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestServeAgreesWithTheRules compares the rule in SQL with the one in package rules, on both sides of each boundary.
func TestServeAgreesWithTheRules(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	c, err := s.dialer.Dial(t.Context(), brief)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	const ms = time.Millisecond
	for _, ago := range []time.Duration{
		0, 300 * ms, 700 * ms, 900 * ms, 1100 * ms, time.Hour, 1e6 * time.Hour,
		-300 * ms, -700 * ms, -1300 * ms, -time.Hour,
	} {
		for _, how := range []string{"serves on", "begins", "begins anew"} {
			was := rules.Serving{Since: 5, BrakeUntil: 7, LapsedAt: 9}
			readAll(t, s.cfg.URL, fmt.Sprintf("update serving set last_beat = floor(extract(epoch"+
				" from clock_timestamp()) * 1000)::bigint - %d,"+
				" since = 5, brake_until = 7, lapsed_at = 9", ago.Milliseconds()), nil)
			readAll(t, s.cfg.URL, "select last_beat from serving",
				func(values [][]byte) { _, _ = fmt.Sscan(string(values[0]), &was.LastBeat) })
			s.notedAt = s.clockSteps.since()
			if how == "begins" {
				s.notedAt = 0
			}
			got, _, err := s.serveOnce(c, how == "begins anew")
			if err != nil {
				t.Fatal(err)
			}
			now := got.LastBeat
			want := rules.Serve(was, rules.ClockReading{}, rules.ClockReading{Wall: now})
			switch how {
			case "begins":
				want = rules.BeginToServe(was, now)
			case "begins anew":
				want.Since = now
			}
			readAll(t, s.cfg.URL, "select last_beat from serving",
				func(values [][]byte) { _, _ = fmt.Sscan(string(values[0]), &got.LastBeat) })
			if got != want {
				t.Errorf("a node %s %v after the last beat: the store says %+v, the rules %+v", how, ago, got, want)
			}
		}
	}
}

// TestSlowAnswersAreNoClockSteps: progress of the database's clock is a step if the time of the round trips
// cannot explain it.
func TestSlowAnswersAreNoClockSteps(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name         string
		progress     time.Duration // of the database's clock
		sent, answer time.Duration // when the second reading was sent and answered, by our clock
		firstTook    time.Duration
		want         bool
	}{
		{"like ours", 250 * ms, 250 * ms, 251 * ms, ms, false},
		{"a second ahead", 1250 * ms, 250 * ms, 250 * ms, 0, false},
		{"more than a second ahead", 1252 * ms, 250 * ms, 251 * ms, 0, true},
		{"more than a second ahead, but the second answer took that long", 1252 * ms, 250 * ms, 260 * ms, 0, false},
		{"a second behind", -750 * ms, 250 * ms, 250 * ms, 0, false},
		{"more than a second behind", -751 * ms, 250 * ms, 250 * ms, 0, true},
		{
			"more than a second behind, but the first answer took that long", -751 * ms, 250 * ms, 250 * ms, 10 * ms,
			false,
		},
		{"an hour ahead after a long answer", time.Hour, 250 * ms, 5 * time.Second, 0, true},
		{"stood still for a second", 0, 1001 * ms, 1002 * ms, ms, false},
		{"stood still for longer", 0, 1002 * ms, 1003 * ms, ms, true},
	} {
		var s clockSteps
		const start = lessor.Instant(1_700_000_000_000)
		if s.stepped(reading{at: start, sent: 0, answer: c.firstTook}) {
			t.Errorf("%s: the first reading is a step, want none", c.name)
		}
		got := s.stepped(reading{at: start.Add(c.progress), sent: c.sent, answer: c.answer})
		if got != c.want {
			t.Errorf("%s: a step: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestFloorMovesOnceAfterAGap lets more than a second pass in which no node serves. The floor moves once, for all
// nodes.
func TestFloorMovesOnceAfterAGap(t *testing.T) {
	url := pool.Database(t)
	a, b := openAt(t, Config{URL: url}), openAt(t, Config{URL: url})
	serve := func(s *Store) rules.Serving {
		t.Helper()
		serving, err := s.Serve(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return serving
	}
	unmoved := func(from rules.Serving, s *Store) rules.Serving {
		t.Helper()
		to := serve(s)
		if to.Since != from.Since && to.LastBeat.Sub(from.LastBeat) <= time.Second/2 { // else the machine stalled
			t.Errorf("the floor moved from %+v to %+v, want it unmoved", from, to)
		}
		return to
	}
	first := serve(a)
	last := first
	for range 5 {
		time.Sleep(300 * time.Millisecond)
		last = unmoved(last, b) // b alone serves, which keeps the floor
	}
	unmoved(last, a)
	time.Sleep(1200 * time.Millisecond)
	var in rules.Serving
	var now lessor.Instant
	if err := a.Update(t.Context(), func(tx scheduler.Tx) error {
		in, now = tx.Serving(), tx.Now()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if in.Since != now || in.LastBeat != now {
		t.Errorf("after a gap a transaction at %[1]v judges by %+[2]v, want since and last beat %[1]v", now, in)
	}
	moved := serve(b)
	if moved.Since == first.Since || moved.Since != moved.LastBeat {
		t.Errorf("after a gap serving is %+v, want since the last beat", moved)
	}
	unmoved(moved, a)
}

// TestStartMovesNoFloor: Open, View and Update leave the serving row alone.
func TestStartMovesNoFloor(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url})
	if err := write(t.Context(), s, "x", nil); err != nil {
		t.Fatal(err)
	}
	readAll(t, url, "select last_beat, since from serving", func(values [][]byte) {
		if string(values[0]) != "0" || string(values[1]) != "0" {
			t.Errorf("no node served, and the serving row has %q, want zeros", values)
		}
	})
}
