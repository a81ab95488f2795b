package rules

import (
	"fmt"
	"time"

	"lessor"
)

// FailedEvery is how often people are told that jobs of one type failed for good.
const FailedEvery = time.Minute

// Failures are jobs of one type of a tenant that failed for good.
type Failures struct {
	Count int64
	Last  lessor.JobID
}

// FailedForGood reports whether a job that ended so is one that people should hear of.
func FailedForGood(s lessor.State) bool { return s == lessor.Failed || s == lessor.Expired }

// FailedAlert brings the alert about a type's failed jobs up to date; open is the one that is not cleared, nil if there is none, and f what
// failed since. An alert collects for FailedEvery: it is told when it is raised, and when it is cleared with its count. changed says
// whether there is something to store, and told whether people hear of it.
func FailedAlert(open *lessor.Alert, f Failures, typ string, now lessor.Instant) (a lessor.Alert, changed, told bool) {
	switch {
	case open != nil:
		a = *open
	case f.Count == 0:
		return a, false, false
	default:
		a = lessor.Alert{Kind: lessor.AlertJobFailed, Subject: typ, RaisedAt: now}
		told = true
	}
	if f.Count > 0 {
		a.Count += f.Count
		a.Message = fmt.Sprintf("%d jobs of type %s failed for good within a minute; the last is %s", a.Count, typ, f.Last)
		if a.Count == 1 {
			a.Message = fmt.Sprintf("job %s of type %s failed for good", f.Last, typ)
		}
	}
	if open != nil && now.Sub(open.RaisedAt).Abs() >= FailedEvery { // a clock that was set back counts too
		a.ClearedAt, told = now, true
	}
	return a, told || f.Count > 0, told
}
