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

// How long a denied worker should wait before it asks again.
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

// CheckCapacity refuses a change of capacity that is out of bounds.
func CheckCapacity(total, busy, expiresInS *int64, reserve int) error {
	var c check
	c.number("total_units", total, int64(reserve)+1, maxUnits, 0)
	c.number("busy", busy, 0, MaxBusy, 0)
	c.number("expires_in_s", expiresInS, 1, maxRuntimeS, 0)
	return c.err()
}
