package rules

import (
	"testing"
	"time"

	"lessor"
)

func TestUsableUnitsAtEachBusyRating(t *testing.T) {
	want := []int{95, 95, 95, 75, 60, 45, 30, 20, 10, 5, 0} // of total 100, reserve 5
	for busy, units := range want {
		if got := Usable(100, 5, busy, DefaultPercent); got != units {
			t.Errorf("busy %d gives %d usable units, want %d", busy, got, units)
		}
	}
	for _, c := range []struct {
		name                       string
		total, reserve, busy, want int
	}{
		{"a fraction of a unit is cut off", 99, 5, 8, 9},
		{"the reserve is larger than what is left", 30, 5, 8, 0},
		{"the reserve is exactly what is left", 50, 5, 9, 0},
		{"a rating below the scale", 100, 5, -1, 95},
		{"a rating above the scale", 100, 5, 11, 0},
		{"as many units as there can be", 1_000_000_000, 5, 3, 799_999_995},
	} {
		if got := Usable(c.total, c.reserve, c.busy, DefaultPercent); got != c.want {
			t.Errorf("%s: %d usable units, want %d", c.name, got, c.want)
		}
	}
}

func TestAdmitDeniesWhileDrainingOrFull(t *testing.T) {
	full := lessor.Capacity{Busy: 8, UsableUnits: 10, LeasedUnits: 10}
	free := lessor.Capacity{Busy: 8, UsableUnits: 10, LeasedUnits: 9, AvailableUnits: 1}
	noCapacity := &lessor.Denial{
		Denied: true, Code: "no_capacity",
		Reason: "No capacity (busy=8, usable=10, leased=10)", RetryAfterMS: 1500,
	}
	draining := &lessor.Denial{Denied: true, Code: "draining", Reason: "Draining", RetryAfterMS: 5000}
	for _, c := range []struct {
		name     string
		capacity lessor.Capacity
		draining bool
		want     *lessor.Denial
	}{
		{"one unit free", free, false, nil},
		{"no unit free", full, false, noCapacity},
		{"draining, one unit free", free, true, draining},
		{"draining, no unit free", full, true, draining},
	} {
		same(t, c.name+": the denial", Admit(c.capacity, c.draining), c.want)
	}
}

func TestFitDeniesAJobLargerThanWhatIsAvailable(t *testing.T) {
	tooLarge := func(reason string) *lessor.Denial {
		return &lessor.Denial{Denied: true, Code: "next_job_too_large", Reason: reason, RetryAfterMS: 2000}
	}
	for _, c := range []struct {
		units, available int
		want             *lessor.Denial
	}{
		{4, 5, nil},
		{4, 4, nil},
		{5, 4, tooLarge("Next job needs 5 units but only 4 are available")},
		{12, 4, tooLarge("Next job needs 12 units but only 4 are available")},
		{1, -3, tooLarge("Next job needs 1 units but only 0 are available")},
	} {
		same(t, "the denial", Fit(c.units, c.available), c.want)
	}
}

func TestNoneLeftAsksToComeBackWhenTheQueueMayChange(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		next  lessor.Instant
		retry int64
	}{
		{"nothing known", 0, 1500},
		{"in 1501 ms", after(1501 * ms), 1500},
		{"in 1500 ms", after(1500 * ms), 1500},
		{"in 1499 ms", after(1499 * ms), 1499},
		{"in 101 ms", after(101 * ms), 101},
		{"in 100 ms", after(100 * ms), 100},
		{"in 99 ms", after(99 * ms), 100},
		{"overdue", after(-time.Hour), 100},
	} {
		want := &lessor.Denial{Denied: true, Code: "no_eligible_job", Reason: "No eligible jobs", RetryAfterMS: c.retry}
		same(t, c.name+": the denial", NoneLeft(start, c.next), want)
	}
}

func TestJobStarvesAfterAMinuteInFront(t *testing.T) {
	for _, c := range []struct {
		name  string
		since lessor.Instant
		want  bool
	}{
		{"never in front", 0, false},
		{"60 s less 1 ms", after(-time.Minute + time.Millisecond), false},
		{"60 s", after(-time.Minute), true},
	} {
		if got := Starving(c.since, start); got != c.want {
			t.Errorf("%s: units are kept for it: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCapacityChangeBounds(t *testing.T) {
	for _, c := range []struct {
		name                string
		total, busy, expiry *int64
		field, message      string // "" = accepted
	}{
		{"nothing", nil, nil, nil, "", ""},
		{"one unit more than the reserve", new(int64(6)), nil, nil, "", ""},
		{"as many as the reserve", new(int64(5)), nil, nil, "total_units", "must be 6 to 1000000000, not 5"},
		{"most units", new(int64(1_000_000_000)), nil, nil, "", ""},
		{"one more", new(int64(1_000_000_001)), nil, nil, "total_units", "must be 6 to 1000000000, not 1000000001"},
		{"busy 0", nil, new(int64(0)), nil, "", ""},
		{"busy -1", nil, new(int64(-1)), nil, "busy", "must be 0 to 10, not -1"},
		{"busy 10", nil, new(int64(10)), nil, "", ""},
		{"busy 11", nil, new(int64(11)), nil, "busy", "must be 0 to 10, not 11"},
		{"for a second", new(int64(50)), nil, new(int64(1)), "", ""},
		{"for no time", new(int64(50)), nil, new(int64(0)), "expires_in_s", "must be 1 to 31622400, not 0"},
		{"for 366 days", nil, new(int64(1)), new(int64(31622400)), "", ""},
		{
			"for a second, but what", nil, nil, new(int64(1)),
			"expires_in_s", "goes with a value for total_units or busy, and neither is set",
		},
		{
			"for a second more", nil, new(int64(1)), new(int64(31622401)), "expires_in_s",
			"must be 1 to 31622400, not 31622401",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Overrides{}.Change(&lessor.CapacityAsk{
				TotalUnits: lessor.Change[int64]{To: c.total}, Busy: lessor.Change[int64]{To: c.busy},
				ExpiresInS: c.expiry,
			}, 5, start)
			if c.field == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wrong(t, err, lessor.FieldError{Field: c.field, Message: c.message})
		})
	}
}

func TestEachFieldOfTheCapacityHasItsOwnExpiry(t *testing.T) {
	change := func(o Overrides, at time.Duration, ask lessor.CapacityAsk) Overrides {
		t.Helper()
		o, err := o.InForce(after(at)).Change(&ask, 5, after(at))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := change(Overrides{}, 0, lessor.CapacityAsk{TotalUnits: lessor.SetTo(int64(50)), ExpiresInS: new(int64(60))})
	o = change(o, 10*time.Second, lessor.CapacityAsk{Busy: lessor.SetTo(int64(4)), ExpiresInS: new(int64(20))})
	if o.TotalUnits.Ends() != after(60*time.Second) || o.Busy.Ends() != after(30*time.Second) {
		t.Errorf("the total ends at %s, the rating at %s, want each at its own", o.TotalUnits.Ends(), o.Busy.Ends())
	}
	if again := change(o, 20*time.Second, lessor.CapacityAsk{}); again != o {
		t.Errorf("an empty request made %+v of %+v", again, o)
	}
	if left := o.InForce(after(30 * time.Second)); left.Busy != nil || left.TotalUnits == nil {
		t.Errorf("after 30 s %+v is left, want the total alone", left)
	}
	if left := o.InForce(after(60 * time.Second)); left != (Overrides{}) {
		t.Errorf("after 60 s %+v is left", left)
	}
	o = change(o, 20*time.Second, lessor.CapacityAsk{Busy: lessor.SetTo(int64(5))})
	if o.Busy.Ends() != 0 || o.TotalUnits.Ends() != after(60*time.Second) {
		t.Errorf("a rating for good left %s and %s", o.Busy.Ends(), o.TotalUnits.Ends())
	}
	o = change(o, 20*time.Second, lessor.CapacityAsk{TotalUnits: lessor.Change[int64]{Reset: true}})
	if o.TotalUnits != nil {
		t.Errorf("the total is %+v after its reset", o.TotalUnits)
	}
}
