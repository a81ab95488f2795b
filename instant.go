package lessor

import (
	"bytes"
	"errors"
	"math"
	"time"
)

// Instant is a point in time in milliseconds since 1970 UTC; zero means "never" or "not yet". It is what the stores
// keep and what the wire shows (RFC 3339, milliseconds, Z), so comparing two of them compares what users see, and no
// monotonic reading or zone can slip in.
type Instant int64

// wireTime is how instants look on the wire.
const wireTime = "2006-01-02T15:04:05.000Z"

// At returns the instant of t, cut to the millisecond.
func At(t time.Time) Instant { return Instant(t.UnixMilli()) }

// Add returns i moved by d, cut to the millisecond.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d.Milliseconds()) }

// Sub returns the time from j to i. Instants further apart than a duration can say (292 years) give the longest one.
func (i Instant) Sub(j Instant) time.Duration {
	const longest = Instant(math.MaxInt64 / time.Millisecond)
	return time.Duration(min(max(i-j, -longest), longest)) * time.Millisecond
}

// IsZero reports whether i is not set.
func (i Instant) IsZero() bool { return i == 0 }

// Time returns i as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMilli(int64(i)).UTC() }

// String returns the wire form, or "-" for an instant that is not set.
func (i Instant) String() string {
	if i == 0 {
		return "-"
	}
	return string(i.Append(nil))
}

// MarshalJSON writes the wire form, or null for an instant that is not set.
func (i Instant) MarshalJSON() ([]byte, error) {
	if i == 0 {
		return []byte("null"), nil
	}
	b := append(make([]byte, 0, len(wireTime)+2), '"')
	return append(i.Append(b), '"'), nil
}

// Append appends the wire form to b, also of an instant that is not set.
func (i Instant) Append(b []byte) []byte {
	t := i.Time()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, wireTime)
	}
	hour, minute, second := t.Clock()
	text := [len(wireTime)]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 23: 'Z'}
	put := func(at, digits, n int) {
		for ; digits > 0; digits-- {
			text[at+digits-1] = byte('0' + n%10)
			n /= 10
		}
	}
	put(0, 4, year)
	put(5, 2, int(month))
	put(8, 2, day)
	put(11, 2, hour)
	put(14, 2, minute)
	put(17, 2, second)
	put(20, 3, t.Nanosecond()/int(time.Millisecond))
	return append(b, text[:]...)
}

// UnmarshalJSON reads any RFC 3339 time, or null.
func (i *Instant) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*i = 0
		return nil
	}
	var t time.Time
	if err := t.UnmarshalJSON(b); err != nil {
		return err
	}
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return errors.New("time is outside the years 0 to 9999 in UTC")
	}
	*i = At(t)
	return nil
}
