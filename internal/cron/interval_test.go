package cron

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lessor"
)

func TestIntervalCountsFromItsAnchor(t *testing.T) {
	const anchor = 1_000_000
	i := Interval{Every: 5 * time.Second, Anchor: anchor}
	for _, c := range []struct{ after, want lessor.Instant }{
		{0, anchor + 5000},
		{anchor - 1, anchor + 5000},
		{anchor, anchor + 5000},
		{anchor + 4999, anchor + 5000},
		{anchor + 5000, anchor + 10000},
		{anchor + 5001, anchor + 10000},
		{anchor + 5_000_000_000, anchor + 5_000_005_000},
	} {
		if got := i.Next(c.after); got != c.want {
			t.Errorf("after %d comes %d, want %d", c.after, got, c.want)
		}
	}
	if got := (Interval{Anchor: anchor}).Next(anchor); got != 0 {
		t.Errorf("an interval of nothing fires at %d", got)
	}
}

func TestJitterIsDeterministicAndSpreads(t *testing.T) {
	const most = 30 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		tick := lessor.Instant(rapid.Int64().Draw(t, "tick"))
		most := time.Duration(rapid.Int64Range(-1, 1<<62).Draw(t, "most"))
		got := Jitter("a", tick, most)
		if got < 0 || got > max(most, 0) || got%time.Millisecond != 0 || got != Jitter("a", tick, most) {
			t.Fatalf("jitter of at most %v is %v", most, got)
		}
	})
	var sum time.Duration
	for i := range 1000 {
		sum += Jitter(fmt.Sprint("job-", i), 5000, most)
	}
	if mean := sum / 1000; mean < 14*time.Second || mean > 16*time.Second {
		t.Errorf("the jitter of 1000 definitions is %v on average, want about half of %v", mean, most)
	}
	if Jitter("a", 1000, most) == Jitter("a", 2000, most) {
		t.Error("two ticks of one definition have the same jitter")
	}
	if got, want := Jitter("nightly-posting", 1_700_000_000_000,
		time.Hour), 55*time.Minute+14805*time.Millisecond; got != want {
		t.Errorf("the jitter of a known tick moved to %v from %v", got, want)
	}
}
