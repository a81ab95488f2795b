package cron

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func zoneNamed(t testing.TB, name string) *time.Location {
	t.Helper()
	all, err := zones()
	if err != nil {
		t.Fatalf("read the zones of Go: %v", err)
	}
	i := slices.IndexFunc(all, func(z zone) bool { return z.name == name })
	if i < 0 {
		t.Fatalf("there is no zone %s", name)
	}
	return all[i].loc
}

// TestNextFollowsTheClock gives the rule of skipped and repeated hours by example. The oracle has the rest.
func TestNextFollowsTheClock(t *testing.T) {
	for _, c := range []struct {
		name, zone, expr, after string
		want                    []string
	}{
		{
			"a plain day", "UTC", "30 2 * * *", "2026-01-01T00:00:00Z",
			[]string{"2026-01-01T02:30:00Z", "2026-01-02T02:30:00Z"},
		},
		{
			"strictly after", "UTC", "30 2 * * *", "2026-01-01T02:30:00Z",
			[]string{"2026-01-02T02:30:00Z"},
		},
		{
			"a part of a second before", "UTC", "30 2 * * *", "2026-01-01T02:29:59.999999999Z",
			[]string{"2026-01-01T02:30:00Z"},
		},
		{
			"a part of a second after", "UTC", "* * * * *", "2026-01-01T02:30:00.5Z",
			[]string{"2026-01-01T02:31:00Z"},
		},
		{
			"an hour that does not exist", "Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		{
			"several times in it are one", "Europe/Berlin", "0,20,40 2,3 * * *", "2026-03-29T00:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:20:00+02:00"},
		},
		{
			"every hour", "Europe/Berlin", "30 * * * *", "2026-03-29T01:00:00+01:00",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"},
		},
		{
			"an hour that comes twice", "Europe/Berlin", "30 2 * * *", "2026-10-25T00:00:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		{
			"asked between the two", "Europe/Berlin", "30 2 * * *", "2026-10-25T02:10:00+01:00",
			[]string{"2026-10-26T02:30:00+01:00"},
		},
		{
			"an hour field with a star fires twice", "Europe/Berlin", "30 */2 * * *", "2026-10-25T01:00:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T04:30:00+01:00"},
		},
		{
			"a minute field with a star fires twice", "Europe/Berlin", "*/30 2 * * *", "2026-10-25T01:00:00+02:00",
			[]string{
				"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00",
				"2026-10-25T02:30:00+01:00", "2026-10-26T02:00:00+01:00",
			},
		},
		{
			"half an hour", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		{
			"two hours", "Antarctica/Troll", "30 1,2 * * *", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T01:30:00+02:00"},
		},
		{
			"a day without midnight", "Asia/Beirut", "0 0 * * *", "2026-03-28T12:00:00+02:00",
			[]string{"2026-03-29T01:00:00+03:00", "2026-03-30T00:00:00+03:00"},
		},
		{
			"a day that does not exist", "Pacific/Apia", "0 12 * * *", "2011-12-29T12:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"},
		},
		{
			"a day that comes twice", "Pacific/Kwajalein", "0 12 * * *", "1969-09-30T00:00:00+11:00",
			[]string{"1969-09-30T12:00:00+11:00", "1969-10-01T12:00:00-12:00"},
		},
		{
			"Ramadan", "Africa/Casablanca", "30 2 * * *", "2026-02-14T12:00:00+01:00",
			[]string{"2026-02-15T02:30:00+01:00", "2026-02-16T02:30:00Z"},
		},
		{
			"the last day of a leap year", "Europe/Warsaw", "0 12 31 12 *", "2040-12-30T12:00:00+01:00",
			[]string{"2040-12-31T12:00:00+01:00", "2041-12-31T12:00:00+01:00"},
		},
		{
			"the end of the last day of a leap year", "America/Denver", "0 0 1 * *", "2040-12-31T01:00:00-07:00",
			[]string{"2041-01-01T00:00:00-07:00"},
		},
		{
			"the rarest day", "UTC", "0 0 29 2 */7", "2088-03-01T00:00:00Z",
			[]string{"2128-02-29T00:00:00Z"},
		},
		{
			"either day", "UTC", "0 0 13 * FRI", "2026-11-10T00:00:00Z",
			[]string{"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"},
		},
		{
			"a day field that begins with a star restricts nothing", "UTC", "0 0 */2 * MON", "2026-11-10T00:00:00Z",
			[]string{"2026-11-23T00:00:00Z", "2026-12-07T00:00:00Z"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			loc := zoneNamed(t, c.zone)
			s, err := Parse(c.expr, "")
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339Nano, c.after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range c.want {
				at = s.Next(at, loc)
				got = append(got, at.Format(time.RFC3339))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s in %s (-want +got):\n%s", c.expr, c.zone, diff)
			}
		})
	}
}

func TestZeroScheduleNeverFires(t *testing.T) {
	if tick := (Schedule{}).Next(proofFrom, time.UTC); !tick.IsZero() {
		t.Errorf("it fires at %v", tick)
	}
}

// TestNextMatchesTheOracleAnywhere asks about random expressions, zones and days, also long before and after the proof.
func TestNextMatchesTheOracleAnywhere(t *testing.T) {
	all := allZones(t)
	rapid.Check(t, func(t *rapid.T) {
		expr := drawExpression(t)
		s, err := Parse(expr, "")
		if err != nil {
			if !strings.Contains(err.Error(), "never fires") {
				t.Fatalf("%s: %v", expr, err)
			}
			return
		}
		loc := rapid.SampledFrom(all).Draw(t, "zone").loc
		// From 1973 on, when the last zone gave up an offset with seconds, to 2100.
		from := time.Unix(rapid.Int64Range(1.6e6, 68e6).Draw(t, "minute")*60, 0)
		to := from.AddDate(0, 0, rapid.SampledFrom([]int{3, 20}).Draw(t, "days"))
		o := newOracle(expr)
		got, want := firesOf(s, from, to, loc), o.fires(walk(from, to, loc))
		if bad := firstDifference(got, want); bad != 0 {
			t.Fatalf("%s in %s, asked from %v: differs at %v", expr, loc, from, time.Unix(bad, 0).In(loc))
		}
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("%s in %s does not rise: %v", expr, loc, got)
		}
	})
}

func drawExpression(t *rapid.T) string {
	var words []string
	for i, f := range fields {
		var terms []string
		for range rapid.IntRange(1, 2).Draw(t, "terms") {
			low := rapid.IntRange(f.low, f.most).Draw(t, "low")
			high := rapid.IntRange(low, f.most).Draw(t, "high")
			step := rapid.IntRange(1, f.high-f.low+1).Draw(t, "step")
			terms = append(terms, rapid.SampledFrom([]string{
				"*", "*", fmt.Sprint("*/", step), fmt.Sprint(low), fmt.Sprintf("%d-%d", low, high),
				fmt.Sprintf("%d-%d/%d", low, high, step), fmt.Sprintf("%d/%d", min(low, fields[i].high), step),
			}).Draw(t, "term"))
		}
		words = append(words, strings.Join(terms, ","))
	}
	return strings.Join(words, " ")
}

// TestChangesAreFarApart holds the zones to what Next takes for granted: what a change of offset skips or repeats is
// over before the next change, and was not touched by the one before.
func TestChangesAreFarApart(t *testing.T) {
	for _, z := range allZones(t) {
		at, _ := changes(z.loc, time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
			time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
		for i := 1; i < len(at); i++ {
			if at[i].Sub(at[i-1]) < maxChange {
				t.Errorf("%s changes at %v and again at %v", z.name, at[i-1], at[i])
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	loc := zoneNamed(b, "Europe/Berlin")
	for _, expr := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "0 0 29 2 */7"} {
		b.Run(expr, func(b *testing.B) {
			s, err := Parse(expr, "")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				s.Next(proofFrom, loc)
			}
		})
	}
}
