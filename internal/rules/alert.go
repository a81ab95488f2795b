package rules

import (
	"fmt"
	"strings"
	"time"

	"lessor"
)

// FailedEvery is the time between two notices about failed jobs of one type.
const FailedEvery = time.Minute

// Failures counts jobs of one tenant and type that failed for good.
type Failures struct {
	Count int64
	Last  lessor.JobID
}

// FailedForGood reports whether a job that ended in this state counts in an alert.
func FailedForGood(s lessor.State) bool { return s == lessor.Failed || s == lessor.Expired }

// FailedAlert returns the alert about a type's failed jobs with the failures f added. last is the open alert, or,
// if there is none, the one into which this node counted; nil if there is neither. An alert collects for
// FailedEvery: it is sent when it is raised, and with its count when it is cleared. If another node has cleared it
// just now, it is sent again with the failures that the other node did not know of. changed reports whether the
// alert must be stored, send whether it must be sent.
func FailedAlert(last *lessor.Alert, f Failures, typ string, now lessor.Instant) (a lessor.Alert, changed, send bool) {
	open := last != nil && last.ClearedAt == 0
	switch {
	case open:
		a = *last
	case f.Count == 0:
		return a, false, false
	case last != nil && now.Sub(last.ClearedAt).Abs() < FailedEvery:
		a, send = *last, true
	default:
		a = lessor.Alert{Kind: lessor.AlertJobFailed, Subject: typ, RaisedAt: now}
		send = true
	}
	if f.Count > 0 {
		a.Count += f.Count
		a.Message = fmt.Sprintf("%d jobs of type %s failed for good within a minute; the last is %s",
			a.Count, typ, f.Last)
		if a.Count == 1 {
			a.Message = fmt.Sprintf("job %s of type %s failed for good", f.Last, typ)
		}
	}
	if open && now.Sub(last.RaisedAt).Abs() >= FailedEvery { // Abs: the clock may have stepped back
		a.ClearedAt, send = now, true
	}
	return a, send || f.Count > 0, send
}

// folderHeld ends the message of an alert about a folder. It distinguishes the alert from the monitor's alerts about
// hung commands.
const folderHeld = "an earlier attempt holds its folder and does not end"

// FolderHeld returns the alert about a job that did not start because an earlier attempt holds its folder.
func FolderHeld(h *Held) lessor.Alert {
	return lessor.Alert{
		Kind: lessor.AlertHung, Subject: h.Turn.Job.String(), TenantID: h.Tenant,
		Message: fmt.Sprintf("job %s cannot be started by %s: %s", h.Turn.Job, h.Worker, folderHeld),
	}
}

// IsFolderHeld reports whether a is such an alert. Its cause is gone when the job runs again or has ended.
func IsFolderHeld(a lessor.Alert) bool {
	return a.Kind == lessor.AlertHung && strings.HasSuffix(a.Message, folderHeld)
}
