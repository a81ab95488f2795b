package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// units are the units of durations, longest first. A day is always 24 hours.
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

// FormatDuration writes d so that ParseDuration can read it back, truncated to milliseconds.
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

// Size is a number of bytes, written like 256KiB.
type Size int64

// The units of sizes.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

var sizeUnits = [...]struct {
	name string
	size Size
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}

var errSize = errors.New("is not a size like 4096B, 256KiB, 16MiB or 1GiB")

// ParseSize reads a whole number with a unit.
func ParseSize(s string) (Size, error) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || Size(n) > math.MaxInt64/u.size {
			return 0, errSize
		}
		return Size(n) * u.size, nil
	}
	return 0, errSize
}

// String writes s in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return "0B"
}

// Busy says where the busy rating comes from. The zero value samples the host.
type Busy struct {
	Set    bool
	Rating int // 0..10, if Set
}

var errBusy = errors.New("is neither host nor a rating 0 to 10")

// parseBusy reads host or a rating. It does not check the range of the rating; the table of keys does.
func parseBusy(s string) (Busy, error) {
	if s == "host" {
		return Busy{}, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return Busy{}, errBusy
	}
	return Busy{Set: true, Rating: n}, nil
}

// String writes what ParseBusy reads.
func (b Busy) String() string {
	if !b.Set {
		return "host"
	}
	return strconv.Itoa(b.Rating)
}
