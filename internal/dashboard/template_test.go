package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimesAndNumbersAreForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 59 * time.Second: "59 s", time.Minute: "1 min 0 s", time.Hour - time.Second: "59 min 59 s",
		time.Hour: "1 h 0 min", day - time.Minute: "23 h 59 min", day: "1 d 0 h", 10*day - time.Hour: "9 d 23 h",
		10 * day: "10 d", 400 * day: "400 d",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0 s", 59: "59 s", 60: "1 min", 90: "90 s", 3600: "1 h", 5400: "90 min", 86400: "1 d", 90000: "25 h",
	} {
		if got := seconds(n); got != want {
			t.Errorf("seconds(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "jobs", 1: "job", 2: "jobs"} {
		if got := plural(n, "job"); got != want {
			t.Errorf("%d %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int]string{
		0: "0", 999: "999", 1000: "1\u202f000", 1234567: "1\u202f234\u202f567", -1000: "-1\u202f000",
	} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestAuditShowsFieldsThatChanged(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          []change
	}{
		{`{"a":1,"b":2,"c":3}`, `{"a":1,"b":4,"d":"x"}`, []change{{"b", "2", "4"}, {"c", "3", ""}, {"d", "", `"x"`}}},
		{`null`, `{"a":null}`, []change{{"a", "", "null"}}},
		{`{"a":1}`, ``, []change{{"a", "1", ""}}},
		{`1`, `[2]`, []change{{"", "1", "[2]"}}},
		{`null`, `null`, nil},
		{
			`{"a":"` + strings.Repeat("x", maxChange) + `"}`, ``,
			[]change{{"a", `"` + strings.Repeat("x", maxChange-1) + "…", ""}},
		},
	} {
		if diff := cmp.Diff(c.want, changes([]byte(c.before), []byte(c.after))); diff != "" {
			t.Errorf("from %s to %s (-want +got):\n%s", c.before, c.after, diff)
		}
	}
}
