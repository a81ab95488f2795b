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

// FailedAlert returns the alert about a type's failed jobs with the failures f added. last is the open alert, or,
// if there is none, the one into which this node counted; nil if there is neither. An alert collects for
// FailedEvery: it is sent when it is raised, and with its count when it is cleared. If another node has cleared it
// just now, it is sent again with the failures that the other node did not know of. changed says whether the alert
// must be stored, and told whether it is sent.
func FailedAlert(last *lessor.Alert, f Failures, typ string, now lessor.Instant) (a lessor.Alert, changed, told bool) {
	open := last != nil && last.ClearedAt == 0
	switch {
	case open:
		a = *last
	case f.Count == 0:
		return a, false, false
	case last != nil && now.Sub(last.ClearedAt).Abs() < FailedEvery:
		a, told = *last, true
	default:
		a = lessor.Alert{Kind: lessor.AlertJobFailed, Subject: typ, RaisedAt: now}
		told = true
	}
	if f.Count > 0 {
		a.Count += f.Count
		a.Message = fmt.Sprintf("%d jobs of type %s failed for good within a minute; the last is %s",
			a.Count, typ, f.Last)
		if a.Count == 1 {
			a.Message = fmt.Sprintf("job %s of type %s failed for good", f.Last, typ)
		}
	}
	if open && now.Sub(last.RaisedAt).Abs() >= FailedEvery { // a clock that was set back counts too
		a.ClearedAt, told = now, true
	}
	return a, told || f.Count > 0, told
}
