package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseReadsEveryForm(t *testing.T) {
	for _, c := range []struct{ expr, same string }{
		{"  0\t3 *  * *  ", "0 3 * * *"},
		{"00 03 * * *", "0 3 * * *"},
		{"@hourly", "0 * * * *"},
		{"@daily", "0 0 * * *"},
		{"@Midnight", "0 0 * * *"},
		{"@weekly", "0 0 * * SUN"},
		{"@monthly", "0 0 1 * *"},
		{"@yearly", "0 0 1 JAN *"},
		{"@annually", "0 0 1 1 *"},
		{"0 0 * jan,Feb,DEC mon-FRI", "0 0 * 1,2,12 1-5"},
		{"0 0 * * 7", "0 0 * * 0"},
		{"0 0 * * 5-7", "0 0 * * 0,5,6"},
		{"0 0 * * 0-7", "0 0 * * 0-6"},
		{"20/15 * * * *", "20-59/15 * * * *"},
		{"0 0 * * 1/2", "0 0 * * 1,3,5"},
		{"0 0 * * 7/2", "0 0 * * 0"},
		{"5-5 * * * *", "5 * * * *"},
		{"0-10/5,7,*/30 * * * *", "0,5,7,10,30 * * * *"},
		{"*/60 */24 */31 */12 */7", "*/60 */24 */31 */12 */7"},
		{"0 0 29 2 *", "0 0 29 FEB *"},
		{"0 0 31 2,3 *", "0 0 31 2,3 *"},
		{"0 0 30 2 1", "0 0 30 2 MON"},
		{strings.Repeat("0,", 55) + "0 * * * *", "0 * * * *"}, // 119 characters
	} {
		got, err := Parse(c.expr, "")
		want, wantErr := Parse(c.same, "")
		if err != nil || wantErr != nil {
			t.Errorf("%q: %v; %q: %v", c.expr, err, c.same, wantErr)
			continue
		}
		if got.minute != want.minute || got.hour != want.hour || got.day != want.day || got.month != want.month ||
			got.week != want.week {
			t.Errorf("%q is not the same as %q", c.expr, c.same)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ expr, says string }{
		{"", "is empty"},
		{" \t ", "is empty"},
		{"* * * *", "has 4 fields instead of five"},
		{"0 * * * * *", "has 6 fields instead of five"},
		{"TZ=UTC 0 3 * * *", "must not hold a time zone (TZ=)"},
		{"CRON_TZ=Asia/Tokyo 0 3 * * *", "must not hold a time zone (CRON_TZ=)"},
		{"TZ=0", "must not hold a time zone (TZ=)"},
		{"TZ= * * * *", "must not hold a time zone (TZ=)"},
		{"@reboot", "must not be @reboot"},
		{"@every 5m", "must not be @every"},
		{"@often", "unknown name"},
		{"@", "unknown name"},
		{"@daily 5", "nothing after @daily"},
		{"*/0 * * * *", `minute: the step "0" is not 1 to 60`},
		{"*/61 * * * *", `minute: the step "61" is not 1 to 60`},
		{"* */25 * * *", `hour: the step "25" is not 1 to 24`},
		{"*/ * * * *", `the step "" is not`},
		{"*/-1 * * * *", `the step "-1" is not`},
		{"*/1/1 * * * *", `the step "1/1" is not`},
		{"60 * * * *", "minute: 60 is not 0 to 59"},
		{"* 24 * * *", "hour: 24 is not 0 to 23"},
		{"* * 0 * *", "day of month: 0 is not 1 to 31"},
		{"* * 32 * *", "day of month: 32 is not 1 to 31"},
		{"* * * 0 *", "month: 0 is not 1 to 12"},
		{"* * * 13 *", "month: 13 is not 1 to 12"},
		{"* * * * 8", "day of week: 8 is not 0 to 7"},
		{"30-10 * * * *", `minute: the range "30-10" runs backwards`},
		{
			"* * * * FRI-MON",
			`the range "FRI-MON" runs backwards: name both parts in a list, and Sunday at the end of a range is 7`,
		},
		{"0-60 * * * *", "60 is not 0 to 59"},
		{"-5 * * * *", `"" is not a number`},
		{"5- * * * *", `"" is not a number`},
		{"1-2-3 * * * *", `"2-3" is not a number`},
		{"+5 * * * *", `"+5" is not a number`},
		{"1,,2 * * * *", `"" is not a number`},
		{", * * * *", `"" is not a number`},
		{"? * * * *", `"?" is not a number`},
		{"* * L * *", `"L" is not a number`},
		{"* * * Jänner *", `neither a number nor a name like FEB`},
		{"* * * * 1#2", `neither a number nor a name like MON`},
		{"MON * * * *", `"MON" is not a number`},
		{"** * * * *", `"**" is not a number`},
		{"* * * *\n*", "has 4 fields"},
		{"99999999999999999999 * * * *", "is not a number"},
		{"H(5) * * * *", `"5" is not a range`},
		{"H() * * * *", `"" is not a range`},
		{"H(9-1) * * * *", "runs backwards"},
		{"H(0-60) * * * *", "60 is not 0 to 59"},
		{"H( * * * *", `"H(" is not a number`},
		{"H5 * * * *", `"H5" is not a number`},
		{"h * * * *", `"h" is not a number`},
		{"H/0 * * * *", `the step "0"`},
		{"30 2 30 2 *", "never fires"},
		{"0 0 31 4,6,9,11 *", "never fires"},
		{"0 0 30-31 2 */2", "never fires"},
		{strings.Repeat("0,", 55) + "00 * * * *" + " ", "longer than 120 characters"},
	} {
		s, err := Parse(c.expr, "job")
		if err == nil {
			t.Errorf("%q was accepted as %v", c.expr, s)
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, which does not say %s", c.expr, err, c.says)
		}
	}
}

// TestHashSpreads holds H to its range, to one value a job, and to every value of the range among many jobs.
func TestHashSpreads(t *testing.T) {
	for _, c := range []struct {
		expr       string
		set        func(Schedule) uint64
		every      uint64 // all values that may come
		values     int    // of one job
		difference int    // between two of its values
	}{
		{"H * * * *", func(s Schedule) uint64 { return s.minute }, 1<<60 - 1, 1, 0},
		{"0 H * * *", func(s Schedule) uint64 { return s.hour }, 1<<24 - 1, 1, 0},
		{"0 0 H * *", func(s Schedule) uint64 { return s.day }, 1<<29 - 2, 1, 0},
		{"0 0 1 H *", func(s Schedule) uint64 { return s.month }, 1<<13 - 2, 1, 0},
		{"0 0 * * H", func(s Schedule) uint64 { return s.week }, 1<<7 - 1, 1, 0},
		{"H/15 * * * *", func(s Schedule) uint64 { return s.minute }, 1<<60 - 1, 4, 15},
		{"0 H(2-5) * * *", func(s Schedule) uint64 { return s.hour }, 0b111100, 1, 0},
		{"0 H(2-7)/2 * * *", func(s Schedule) uint64 { return s.hour }, 0b11111100, 3, 2},
		{"0 H(2-3)/9 * * *", func(s Schedule) uint64 { return s.hour }, 0b1100, 1, 0},
	} {
		var seen uint64
		for i := range 1000 {
			job := fmt.Sprint("job-", i)
			s, err := Parse(c.expr, job)
			if err != nil {
				t.Fatalf("%s: %v", c.expr, err)
			}
			if again, _ := Parse(c.expr, job); again != s {
				t.Fatalf("%s of %s is %v once and %v again", c.expr, job, s, again)
			}
			set := c.set(s)
			seen |= set
			for n, last := 0, next(set, 0); ; n++ {
				v := next(set, last+1)
				if v == none {
					if n+1 != c.values {
						t.Fatalf("%s of %s has %d values, want %d", c.expr, job, n+1, c.values)
					}
					break
				}
				if v-last != c.difference {
					t.Fatalf("%s of %s has %d and %d", c.expr, job, last, v)
				}
				last = v
			}
		}
		if seen != c.every {
			t.Errorf("%s: 1000 jobs have %b, want %b", c.expr, seen, c.every)
		}
	}
}

// TestHashStays holds H to values that were given out: another hash would move every definition.
func TestHashStays(t *testing.T) {
	s, err := Parse(strings.Repeat("H ", 5), "nightly-posting")
	if err != nil {
		t.Fatal(err)
	}
	got := []int{next(s.minute, 0), next(s.hour, 0), next(s.day, 0), next(s.month, 0), next(s.week, 0)}
	if want := []int{53, 2, 24, 3, 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, expr := range append(expressions, "H H(1-5)/2 * * *", "@daily", "TZ=0", "@every 5m", "0 0 30 2 *") {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		s, err := Parse(expr, "job")
		if err != nil {
			return
		}
		after := time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC) // eight years to the next leap day
		if tick := s.Next(after, time.UTC); !tick.After(after) {
			t.Fatalf("%q fires at %v", expr, tick)
		}
	})
}
