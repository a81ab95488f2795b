package rules

import (
	"fmt"
	"time"

	"lessor"
)

// MaxBusy is the busiest rating: nothing is leased.
const MaxBusy = 10

// Percent says how much of the total may be leased at each busy rating.
type Percent [MaxBusy + 1]int

// DefaultPercent is the table of the contract.
var DefaultPercent = Percent{100, 100, 100, 80, 65, 50, 35, 25, 15, 10, 0}

// Usable returns the units that may be leased at a busy rating.
func Usable(total, reserve, busy int, percent Percent) int {
	busy = min(max(busy, 0), MaxBusy)
	return max(0, total*percent[busy]/100-reserve)
}

// The waits that denials suggest before the next request.
const (
	retryWhenDraining = 5000 * time.Millisecond
	retryWhenFull     = 1500 * time.Millisecond
	retryWhenTooLarge = 2000 * time.Millisecond
	retryWhenEmpty    = 1500 * time.Millisecond
	retryAtLeast      = 100 * time.Millisecond
)

func deny(code lessor.DenialCode, retry time.Duration, format string, args ...any) *lessor.Denial {
	return &lessor.Denial{
		Denied: true, Code: code, Reason: fmt.Sprintf(format, args...),
		RetryAfterMS: retry.Milliseconds(),
	}
}

// Admit denies every request while the scheduler drains or no unit is free.
func Admit(c lessor.Capacity, draining bool) *lessor.Denial {
	if draining {
		return deny(lessor.Draining, retryWhenDraining, "Draining")
	}
	if c.AvailableUnits <= 0 {
		return deny(lessor.NoCapacity, retryWhenFull, "No capacity (busy=%d, usable=%d, leased=%d)", c.Busy,
			c.UsableUnits, c.LeasedUnits)
	}
	return nil
}

// Fit denies a request whose first job needs more units than are available. The job keeps its place; no smaller job is
// granted instead.
func Fit(units, available int) *lessor.Denial {
	if units <= available {
		return nil
	}
	return deny(lessor.NextJobTooLarge, retryWhenTooLarge, "Next job needs %d units but only %d are available", units,
		max(0, available))
}

// NoneLeft denies a request for which no job is eligible. next is the next due time or expiry, 0 if none is known.
func NoneLeft(now, next lessor.Instant) *lessor.Denial {
	retry := retryWhenEmpty
	if next != 0 {
		retry = min(retry, max(retryAtLeast, next.Sub(now)))
	}
	return deny(lessor.NoEligibleJob, retry, "No eligible jobs")
}

// starveAfter is how long a job may be first and not fit before freed units are reserved for it.
const starveAfter = 60 * time.Second

// Starving reports whether units are reserved for a job that has been first and too large since an instant.
func Starving(since, now lessor.Instant) bool {
	return since != 0 && now.Sub(since) >= starveAfter
}

// maxUnits bounds the total, so that sums of units over all leases cannot overflow.
const maxUnits = 1_000_000_000

// Override is a value that an operator set in place of the configured one.
type Override struct {
	Value int            `json:"value"`
	SetAt lessor.Instant `json:"setAt"`
	Until lessor.Instant `json:"until"` // 0 = until it is reset
}

// Ends returns the time until which the value holds; 0 = for good, or none is set.
func (o *Override) Ends() lessor.Instant {
	if o == nil {
		return 0
	}
	return o.Until
}

// Overrides are what an operator set of the capacity; nil = as configured.
type Overrides struct {
	TotalUnits *Override `json:"totalUnits"`
	Busy       *Override `json:"busy"`
}

// Change returns the overrides after a request, or refuses it. What the request leaves out keeps its value and expiry.
func (o Overrides) Change(ask *lessor.CapacityAsk, reserve int, now lessor.Instant) (Overrides, error) {
	var c check
	c.number("total_units", ask.TotalUnits.To, int64(reserve)+1, maxUnits, 0)
	c.number("busy", ask.Busy.To, 0, MaxBusy, 0)
	var until lessor.Instant
	if ask.ExpiresInS != nil {
		until = now.Add(c.seconds("expires_in_s", ask.ExpiresInS, 1, maxRuntimeS, 0))
		if ask.TotalUnits.To == nil && ask.Busy.To == nil {
			c.fail("expires_in_s", "goes with a value for total_units or busy, and neither is set")
		}
	}
	set := func(old *Override, ch lessor.Change[int64]) *Override {
		switch {
		case ch.To != nil:
			return &Override{Value: int(*ch.To), SetAt: now, Until: until}
		case ch.Reset:
			return nil
		}
		return old
	}
	return Overrides{set(o.TotalUnits, ask.TotalUnits), set(o.Busy, ask.Busy)}, c.err()
}

// InForce returns the overrides without those that have expired.
func (o Overrides) InForce(now lessor.Instant) Overrides {
	return o.each(func(v *Override) *Override {
		if v.Until != 0 && now >= v.Until {
			return nil
		}
		return v
	})
}

// Corrected returns the overrides on a clock that was ahead when they were set: each lasts as long from now as it was
// to last then.
func (o Overrides) Corrected(now lessor.Instant) Overrides {
	return o.each(func(v *Override) *Override {
		if v.Until == 0 || !Ahead(v.SetAt, now) {
			return v
		}
		return &Override{Value: v.Value, SetAt: now, Until: now.Add(v.Until.Sub(v.SetAt))}
	})
}

func (o Overrides) each(fn func(*Override) *Override) Overrides {
	for _, v := range []**Override{&o.TotalUnits, &o.Busy} {
		if *v != nil {
			*v = fn(*v)
		}
	}
	return o
}
