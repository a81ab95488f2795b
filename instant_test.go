package lessor_test

import (
	"encoding/json"
	"testing"
	"time"

	"lessor"
)

const start lessor.Instant = 1_770_408_600_000 // 2026-02-06T20:10:00.000Z

func TestInstantIsWrittenInUTCWithMilliseconds(t *testing.T) {
	for i, want := range map[lessor.Instant]string{
		start:       `"2026-02-06T20:10:00.000Z"`,
		start + 123: `"2026-02-06T20:10:00.123Z"`,
		start - 1:   `"2026-02-06T20:09:59.999Z"`,
		-1:          `"1969-12-31T23:59:59.999Z"`,
		0:           `null`,
	} {
		raw, err := json.Marshal(i)
		if err != nil || string(raw) != want {
			t.Errorf("instant %d is written %s (error %v), want %s", int64(i), raw, err, want)
		}
	}
}

func TestInstantIsReadFromAnyRFC3339Time(t *testing.T) {
	for text, want := range map[string]lessor.Instant{
		`"2026-02-06T20:10:00Z"`:             start,
		`"2026-02-06T20:10:00.000Z"`:         start,
		`"2026-02-06T21:10:00+01:00"`:        start,
		`"2026-02-06T20:10:00.123999Z"`:      start + 123,
		`"1969-12-31T23:59:59.999999999Z"`:   -1,
		`"1970-01-01T00:00:00Z"`:             0,
		`null`:                               0,
		`"2026-02-06T15:40:00.5-04:30"`:      start + 500,
		`"9999-12-31T23:59:59.999999+00:00"`: 253402300799999,
	} {
		i := lessor.Instant(7)
		if err := json.Unmarshal([]byte(text), &i); err != nil || i != want {
			t.Errorf("%s is read as %d (error %v), want %d", text, int64(i), err, int64(want))
		}
	}
	for _, text := range []string{
		`""`, `"now"`, `1770408600000`, `"2026-02-06"`, `"2026-02-06T20:10:00"`, `{}`,
		`true`,
	} {
		var i lessor.Instant
		if err := json.Unmarshal([]byte(text), &i); err == nil {
			t.Errorf("%s is read as %s, want it refused", text, i)
		}
	}
}

func TestInstantArithmeticIsInMilliseconds(t *testing.T) {
	if got := start.Add(1500*time.Millisecond + 999*time.Microsecond); got != start+1500 {
		t.Errorf("1500.999 ms later is %d ms later, want 1500", got-start)
	}
	far := lessor.At(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	if ahead, back := far.Sub(start), start.Sub(far); ahead < 292*365*24*time.Hour || back != -ahead {
		t.Errorf("instants 8000 years apart: %v and %v", ahead, back)
	}
	if got := (start + 1500).Sub(start); got != 1500*time.Millisecond {
		t.Errorf("the time between is %v, want 1.5s", got)
	}
	zone := time.FixedZone("", 3600)
	if got := lessor.At(time.Date(2026, 2, 6, 21, 10, 0, 999_999, zone)); got != start {
		t.Errorf("a time in another zone is %s, want %s", got, start)
	}
	if got := start.Time(); got != time.Date(2026, 2, 6, 20, 10, 0, 0, time.UTC) {
		t.Errorf("as a time it is %v", got)
	}
}

func TestInstantThatIsNotSetSaysSo(t *testing.T) {
	for i, want := range map[lessor.Instant]string{0: "-", start: "2026-02-06T20:10:00.000Z"} {
		if got := i.String(); got != want || i.IsZero() != (want == "-") {
			t.Errorf("instant %d is shown as %q and is zero: %v", int64(i), got, i.IsZero())
		}
	}
}

// FuzzInstantJSON holds that every instant which is read is written in the one wire form and read back as itself.
func FuzzInstantJSON(f *testing.F) {
	for _, s := range []string{
		`null`, `"2026-02-06T20:10:00.123Z"`, `"2026-02-06T20:10:00.1239+01:00"`, `"0000-01-01T00:00:00Z"`,
		`"1970-01-01T00:00:00Z"`,
		`"9999-12-31T23:59:59.999Z"`, `"2016-12-31T23:59:60Z"`, `"x"`, ` null`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var i lessor.Instant
		if json.Unmarshal([]byte(s), &i) != nil {
			return
		}
		raw, err := json.Marshal(i)
		if err != nil {
			t.Fatalf("%s is read as %d and cannot be written: %v", s, int64(i), err)
		}
		if want := len(`"2026-02-06T20:10:00.123Z"`); i != 0 && len(raw) != want {
			t.Fatalf("%s is written as %s", s, raw)
		}
		var again lessor.Instant
		if err := json.Unmarshal(raw, &again); err != nil || again != i {
			t.Fatalf("%s is written as %s and read back as %s (error %v)", s, raw, again, err)
		}
	})
}
