package rules

import (
	"testing"
	"time"

	"lessor"
)

func TestFailedJobsAreAnnouncedOnceAMinute(t *testing.T) {
	job := lessor.JobID{UUID: lessor.UUID{1}}
	open := func(count int64) *lessor.Alert {
		return &lessor.Alert{
			Kind: lessor.AlertJobFailed, Subject: "mail", RaisedAt: after(0), Count: count,
			Message: "before",
		}
	}
	cleared := func(count int64) *lessor.Alert {
		a := open(count)
		a.ClearedAt = after(time.Minute)
		return a
	}
	for name, c := range map[string]struct {
		open          *lessor.Alert
		count         int64
		at            time.Duration
		want          int64
		cleared       bool
		changed, send bool
	}{
		"nothing failed":  {},
		"the first":       {count: 1, want: 1, changed: true, send: true},
		"several at once": {count: 3, want: 3, changed: true, send: true},
		"more within the minute": {
			open: open(3), count: 2, at: time.Minute - time.Millisecond, want: 5,
			changed: true,
		},
		"none within the minute": {open: open(3), at: time.Minute - time.Millisecond, want: 3},
		"the minute is over": {
			open: open(3), at: time.Minute, want: 3, cleared: true, changed: true,
			send: true,
		},
		"the minute is over, and there more": {
			open: open(3), count: 4, at: time.Minute, want: 7, cleared: true,
			changed: true, send: true,
		},
		"another node cleared it": {
			open: cleared(3), count: 4, at: time.Minute + time.Second, want: 7, cleared: true,
			changed: true, send: true,
		},
		"another node cleared it, no more": {open: cleared(3), at: time.Minute + time.Second},
		"it was cleared a minute ago": {
			open: cleared(3), count: 4, at: 2 * time.Minute, want: 4, changed: true,
			send: true,
		},
		"the clock was set back": {
			open: open(3), at: -time.Minute, want: 3, cleared: true, changed: true,
			send: true,
		},
		"the clock was set back a little": {open: open(3), at: -time.Minute + time.Millisecond, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			a, changed, send := FailedAlert(c.open, Failures{c.count, job}, "mail", after(c.at))
			same(t, "count", a.Count, c.want)
			same(t, "cleared", a.ClearedAt != 0, c.cleared)
			same(t, "changed", changed, c.changed)
			same(t, "send", send, c.send)
		})
	}
	one, _, _ := FailedAlert(nil, Failures{1, job}, "mail", after(0))
	many, _, _ := FailedAlert(&one, Failures{1, job}, "mail", after(0))
	same(t, "message", one.Message, "job "+job.String()+" of type mail failed for good")
	same(t, "message", many.Message, "2 jobs of type mail failed for good within a minute; the last is "+job.String())
	for s, want := range map[lessor.State]bool{
		lessor.Failed: true, lessor.Expired: true, lessor.Completed: false,
		lessor.Cancelled: false,
	} {
		same(t, string(s), FailedForGood(s), want)
	}
}
