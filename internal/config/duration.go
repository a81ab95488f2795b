package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// units are the units of durations, longest first. A day is 24 hours: these are spans, not dates.
var units = [...]struct {
	name string
	size time.Duration
}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

var errDuration = errors.New("is not a duration like 250ms, 90s, 2m, 1h30m or 7d")

// ParseDuration reads durations like 250ms, 90s, 2m, 7d and 1h30m: whole numbers, longest unit first, each once. A bare
// 0 is accepted; every other number needs a unit.
func ParseDuration(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	var sum time.Duration
	rest, next := s, 0
	for ok := true; ok; ok = rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil {
			return 0, errDuration
		}
		rest = rest[digits:]
		letters := len(rest) - len(strings.TrimLeft(rest, "dhms"))
		for next < len(units) && units[next].name != rest[:letters] {
			next++
		}
		if next == len(units) || n > int64((math.MaxInt64-sum)/units[next].size) {
			return 0, errDuration
		}
		sum += time.Duration(n) * units[next].size
		rest, next = rest[letters:], next+1
	}
	return sum, nil
}

// FormatDuration writes d so that ParseDuration reads it back, cut to the millisecond.
func FormatDuration(d time.Duration) string {
	var b strings.Builder
	for _, u := range units {
		if d >= u.size {
			b.WriteString(strconv.FormatInt(int64(d/u.size), 10))
			b.WriteString(u.name)
			d %= u.size
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}
