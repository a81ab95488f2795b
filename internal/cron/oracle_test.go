package cron

import (
	"strconv"
	"strings"
	"time"
)

// An oracle says when an expression fires by looking at every minute, one after the other. It shares no code with the
// package, does no arithmetic on offsets, and asks the zone only what the clock shows.
type oracle struct {
	minute, hour, day, month, week [64]bool
	either, repeats                bool
}

func newOracle(expr string) oracle {
	f := strings.Fields(expr)
	o := oracle{either: f[2][0] != '*' && f[4][0] != '*', repeats: f[0][0] == '*' || f[1][0] == '*'}
	for v := range 60 {
		o.minute[v] = named(f[0], v, 59, nil)
		o.hour[v] = named(f[1], v, 23, nil)
		o.day[v] = v > 0 && named(f[2], v, 31, nil)
		o.month[v] = v > 0 && named(f[3], v, 12, strings.Fields("- jan feb mar apr may jun jul aug sep oct nov dec"))
	}
	days := strings.Fields("sun mon tue wed thu fri sat")
	for v := range 7 {
		o.week[v] = named(f[4], v, 6, days) || v == 0 && named(f[4], 7, 6, days)
	}
	return o
}

// named reports whether a field names v.
func named(field string, v, most int, names []string) bool {
	value := func(s string) int {
		for i, name := range names {
			if strings.EqualFold(s, name) {
				return i
			}
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(err)
		}
		return n
	}
	for term := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(term, "/")
		low, high, ranged := strings.Cut(span, "-")
		from, to, by := 0, most, 1
		switch {
		case ranged:
			from, to = value(low), value(high)
		case span != "*" && stepped:
			from = value(span)
		case span != "*":
			from, to = value(span), value(span)
		}
		if most == 31 || most == 12 { // days and months begin with 1
			from = max(from, 1)
		}
		if stepped {
			by = value(step)
		}
		if v >= from && v <= to && (v-from)%by == 0 {
			return true
		}
	}
	return false
}

// A wall is what a clock shows in one minute.
type wall struct {
	number                         int64 // of the minute, were there no changes of offset
	minute, hour, day, month, week uint8
}

func wallAt(t time.Time) wall {
	year, month, day := t.Date()
	hour, minute, _ := t.Clock()
	plain := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
	return wall{plain.Unix() / 60, uint8(minute), uint8(hour), uint8(day), uint8(month), uint8(plain.Weekday())}
}

// A step is one minute of a walk: what the clock shows, what it skipped just before, and whether it showed this before.
type step struct {
	at      int64 // Unix seconds
	shown   wall
	skipped []wall
	again   bool
}

// walk returns every minute from one time to before another.
func walk(from, to time.Time, loc *time.Location) []step {
	var steps []step
	seen := map[int64]bool{}
	latest := wallAt(from.Add(-time.Minute).In(loc)).number
	for t := from.In(loc); t.Before(to); t = t.Add(time.Minute) {
		s := step{at: t.Unix(), shown: wallAt(t)}
		for n := latest + 1; n < s.shown.number; n++ {
			s.skipped = append(s.skipped, wallAt(time.Unix(n*60, 0).UTC()))
		}
		latest = max(latest, s.shown.number)
		s.again = seen[s.shown.number]
		seen[s.shown.number] = true
		steps = append(steps, s)
	}
	return steps
}

// fires returns the Unix seconds of a walk at which the expression fires.
func (o *oracle) fires(steps []step) []int64 {
	var ticks []int64
	for i := range steps {
		s := &steps[i]
		fire := o.names(&s.shown) && (!s.again || o.repeats)
		for j := range s.skipped {
			fire = fire || o.names(&s.skipped[j])
		}
		if fire {
			ticks = append(ticks, s.at)
		}
	}
	return ticks
}

func (o *oracle) names(w *wall) bool {
	if !o.minute[w.minute] || !o.hour[w.hour] || !o.month[w.month] {
		return false
	}
	if o.either {
		return o.day[w.day] || o.week[w.week]
	}
	return o.day[w.day] && o.week[w.week]
}
