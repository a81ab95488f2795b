package rules

import (
	"encoding/json"
	"testing"

	"lessor"
)

// TestMoved: progress counts above all before, a checkpoint when it is another one.
func TestMoved(t *testing.T) {
	reported := func(progress float64, checkpoint string) *Report {
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
		{"no progress yet", nil, reported(0, ""), false},
		{"first progress", nil, reported(0.01, ""), true},
		{"first checkpoint", nil, &Report{Checkpoint: json.RawMessage("1")}, true},
		{"as far as before", reported(0.5, "1"), reported(0.5, "1"), false},
		{"further", reported(0.5, "1"), reported(0.51, "1"), true},
		{"not as far", reported(0.5, "1"), reported(0.49, "1"), false},
		{"another checkpoint", reported(0.5, "1"), reported(0.5, "2"), true},
		{"another checkpoint, not as far", reported(0.5, "1"), reported(0.1, "2"), true},
		{"the checkpoint is gone", reported(0.5, "1"), reported(0.5, ""), false},
		{"fell after a rise", reported(0.5, ""), &Report{Progress: new(0.1), Highest: new(0.9)}, true},
		{"as the version before kept it", reported(0.5, ""), &Report{Progress: new(0.9), Highest: new(0.5)}, true},
	} {
		if c.before != nil {
			c.now.Interrupted = new(c.before.reached())
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
		if e.Moved != c.moved || (last.Interrupted != nil) != (c.moved && !c.uncounted) {
			t.Errorf("release %d with checkpoint %q: moved %t, progress %v; want moved %t",
				n, c.sent, e.Moved, last.Interrupted, c.moved)
		}
		r = r.Merge(last)
	}
}

func TestShowCountsInterruptionsSinceTheLastProgress(t *testing.T) {
	s := queuedJob()
	s.Spec, s.Turn.Interruptions = full, 7
	same(t, "without a report", Show(s).Interruptions, 7)
	s.Report = &Report{Progress: new(0.5)}
	s.Report.Interrupted = new(s.Report.reached())
	same(t, "as far as at the last release", Show(s).Interruptions, 7)
	s.Report.Progress = new(0.6)
	same(t, "further", Show(s).Interruptions, 0)
}

func TestFolderHeldDiffersFromOtherAlerts(t *testing.T) {
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
