// Package cron says when a definition is due: by a cron expression on the wall clock of a time zone, or at an interval
// from an anchor. It is arithmetic on its arguments: no clock, no I/O, no state. Rules call it to check definitions and
// to find their ticks.
//
// An expression names minutes of the wall clock. Where the clock of a zone jumps, the rule is:
//
//   - A minute that the clock skips fires at the first instant after the skipped time. Several such minutes, and one
//     that fires there anyway, are one tick.
//   - A minute that comes twice fires both times if the minute or the hour field begins with "*", otherwise the first
//     time only.
//
// A day field that begins with "*" restricts nothing; if both day fields are restricted, either is enough.
//
// TestOracle holds Next to a walk over every minute around every change of offset, in all zones, from 2020 to 2040:
// go test -v -run Oracle ./internal/cron
package cron

import (
	"math/bits"
	"time"
)

// Schedule is a parsed cron expression. Its zero value never fires.
type Schedule struct {
	minute, hour, day, month, week uint64 // bit n is value n; Sunday is bit 0
	anyDay, anyWeek                bool   // the field begins with "*"
	repeats                        bool   // fires in both of the hours that come twice
}

// horizon bounds the search of Next, in seconds. The rarest day is a 29 February on one day of the week: two of them
// are at most 40 years apart, if a century year without a leap day lies between.
const horizon = 41 * 366 * 24 * 60 * 60

// Next returns the first time after that s fires in loc. Only a schedule that did not come from Parse has none: the
// zero time.
func (s Schedule) Next(after time.Time, loc *time.Location) time.Time {
	now := after.Unix() + 1
	for last := now + horizon; now < last; {
		p := periodOf(now, loc, last)
		if tick, ok := s.in(p, now); ok {
			return time.Unix(tick, 0).In(loc)
		}
		now = p.end
	}
	return time.Time{}
}

const (
	day       = 24 * time.Hour
	maxChange = 26 * time.Hour // no two clocks of the world differ by more
)

// A period is a time in which the offset of a zone does not change. All its fields are in seconds.
type period struct {
	start, end int64 // start is the search's own start if the real one is too long ago to matter
	offset     int64
	before     int64 // the offset until start
}

func periodOf(now int64, loc *time.Location, last int64) period {
	t := time.Unix(now, 0).In(loc)
	_, offset := t.Zone()
	p := period{start: now, end: last, offset: int64(offset), before: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() && t.Sub(start) <= maxChange {
		_, before := start.Add(-time.Second).Zone()
		p.start, p.before = start.Unix(), int64(before)
	}
	switch {
	case end.IsZero():
	case end.After(t):
		p.end = end.Unix()
	default: // the last day of a leap year, which ZoneBounds forgets: https://go.dev/issue/81583
		p.end = t.Truncate(day).Add(day).Unix()
	}
	return p
}

// in returns the first tick in p that is not before now. It considers one change of offset: no zone has another within
// the time that the first one skips or repeats.
func (s Schedule) in(p period, now int64) (tick int64, ok bool) {
	from := now + p.offset
	was, is := p.start+p.before, p.start+p.offset // what the clock showed at the change, and shows after it
	if now == p.start && was < is {
		if _, skipped := s.match(was, is); skipped {
			return p.start, true
		}
	}
	if !s.repeats {
		from = max(from, was)
	}
	wall, ok := s.match(from, p.end+p.offset)
	return wall - p.offset, ok
}

// match returns the first minute that s names, from one time of the wall clock to before another, in seconds as if the
// wall clock were UTC.
func (s Schedule) match(from, to int64) (wall int64, ok bool) {
	t := time.Unix(from, 0).UTC()
	if t.Second() > 0 {
		t = t.Add(time.Duration(60-t.Second()) * time.Second)
	}
	for t.Unix() < to {
		year, month, day := t.Date()
		hour, minute := next(s.hour, t.Hour()), t.Minute()
		if hour > t.Hour() {
			minute = 0
		}
		minute = next(s.minute, minute)
		switch {
		case s.month>>month&1 == 0:
			t = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		case hour == none || !s.onDay(day, t.Weekday()):
			t = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		case minute == none:
			t = time.Date(year, month, day, hour+1, 0, 0, 0, time.UTC)
		default:
			wall = time.Date(year, month, day, hour, minute, 0, 0, time.UTC).Unix()
			return wall, wall < to
		}
	}
	return 0, false
}

// onDay reports whether s fires on a day: if both day fields are restricted, when either matches.
func (s Schedule) onDay(day int, week time.Weekday) bool {
	byDay, byWeek := s.day>>day&1 == 1, s.week>>week&1 == 1
	if s.anyDay || s.anyWeek {
		return byDay && byWeek
	}
	return byDay || byWeek
}

// none is what next returns if there is no such bit.
const none = 64

// next returns the lowest bit of set that is not below from.
func next(set uint64, from int) int { return bits.TrailingZeros64(set >> from << from) }
