package rules

import (
	"encoding/json"
	"testing"

	"lessor"
)

// TestMoved: progress counts above all before, a checkpoint when it is another one.
func TestMoved(t *testing.T) {
	said := func(progress float64, checkpoint string) *Report {
		r := &Report{Progress: &progress, Highest: &progress}
		if checkpoint != "" {
			r.Checkpoint = json.RawMessage(checkpoint)
		}
		return r
	}
	for _, c := range []struct {
		name   string
		before *Report // at the last release that counted; nil = there was none
		now    *Report
		want   bool
	}{
		{"never reported", nil, nil, false},
		{"only a message", nil, &Report{Message: new("hello")}, false},
		{"no progress yet", nil, said(0, ""), false},
		{"first progress", nil, said(0.01, ""), true},
		{"first checkpoint", nil, &Report{Checkpoint: json.RawMessage("1")}, true},
		{"as far as before", said(0.5, "1"), said(0.5, "1"), false},
		{"further", said(0.5, "1"), said(0.51, "1"), true},
		{"not as far", said(0.5, "1"), said(0.49, "1"), false},
		{"another checkpoint", said(0.5, "1"), said(0.5, "2"), true},
		{"another checkpoint, not as far", said(0.5, "1"), said(0.1, "2"), true},
		{"the checkpoint is gone", said(0.5, "1"), said(0.5, ""), false},
		{"fell after a rise", said(0.5, ""), &Report{Progress: new(0.1), Highest: new(0.9)}, true},
		{"as the version before kept it", said(0.5, ""), &Report{Progress: new(0.9), Highest: new(0.5)}, true},
	} {
		if c.before != nil {
			c.now.Mark = new(c.before.mark())
		}
		if got := c.now.Moved(); got != c.want {
			t.Errorf("%s: moved %t, want %t", c.name, got, c.want)
		}
	}
}

// TestReleasedMarksHowFarTheJobHadCome: the same checkpoint, sent again and again, is progress once.
func TestReleasedMarksHowFarTheJobHadCome(t *testing.T) {
	var r Report
	for n, c := range []struct {
		sent      string
		uncounted bool
		moved     bool
	}{
		{"", false, false},
		{"1", true, true}, // leaves no mark: it stays progress for the next
		{"1", false, true},
		{"1", false, false},
		{"", false, false},
		{"2", false, true},
	} {
		last := Report{}
		if c.sent != "" {
			last.Checkpoint = json.RawMessage(c.sent)
		}
		e := End{Uncounted: c.uncounted}
		last = Released(&Held{}, &e, r, last)
		if e.Moved != c.moved || (last.Mark != nil) != (c.moved && !c.uncounted) {
			t.Errorf("release %d with checkpoint %q: moved %t, mark %v; want moved %t", n, c.sent, e.Moved, last.Mark,
				c.moved)
		}
		r = r.Merge(last)
	}
}

func TestShowCountsInterruptionsSinceTheLastProgress(t *testing.T) {
	s := queuedJob()
	s.Spec, s.Turn.Interruptions = full, 7
	same(t, "without a report", Show(s).Interruptions, 7)
	s.Report = &Report{Progress: new(0.5)}
	s.Report.Mark = new(s.Report.mark())
	same(t, "as far as at the last release", Show(s).Interruptions, 7)
	s.Report.Progress = new(0.6)
	same(t, "further", Show(s).Interruptions, 0)
}

func TestFolderHeldIsToldFromOtherAlerts(t *testing.T) {
	a := FolderHeld(lease())
	same(t, "the alert", [3]string{string(a.Kind), a.Subject, a.TenantID.String()},
		[3]string{"hung", jobID(1).String(), lease().Tenant.String()})
	same(t, "itself", IsFolderHeld(a), true)
	same(t, "another hung one", IsFolderHeld(lessor.Alert{
		Kind:    lessor.AlertHung,
		Message: "it pulses without a lease",
	}), false)
	a.Kind = lessor.AlertStale
	same(t, "another kind", IsFolderHeld(a), false)
}
