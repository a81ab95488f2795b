package cli

import (
	"fmt"
	"time"

	"lessor"
)

func printHeartbeats(t table, r lessor.JobHeartbeats, now time.Time) {
	t.row("JOB", "STATUS", "HEARD", "SILENT", "ENGINE")
	for _, j := range r.Jobs {
		t.row(j.JobID.String(), string(j.Status), age(j.LastHeartbeat, now), span(time.Duration(j.AgeSeconds)*time.Second), text(j.AgentEngine))
	}
}

func printStale(t table, r lessor.StaleJobs, now time.Time) {
	t.row("JOB", "HEARD", "MINUTES", "ACTION", "FOLDER")
	for _, j := range r.StaleJobs {
		t.row(j.JobID.String(), age(j.LastHeartbeat, now), fmt.Sprintf("%.2f", j.AgeMinutes), j.RecommendedAction, j.WorkspacePath)
	}
}

func printFailed(t table, r lessor.FailedJobs, now time.Time) {
	t.row("JOB", "FAILED", "HEARD", "RESUMABLE", "REASON")
	for _, j := range r.FailedJobs {
		t.row(j.JobID.String(), ago(j.FailedAt, now), age(j.LastHeartbeat, now), yesNo(j.Resumable), j.Reason)
	}
}

func printSentinels(t table, r lessor.Sentinels, now time.Time) {
	t.row("FOLDER", "STATUS", "HEARD", "SESSION", "ENGINE", "NOTE")
	for _, s := range r.Sentinels {
		status := ""
		if s.Status != nil {
			status = string(*s.Status)
		}
		t.row(s.JobID, status, age(s.LastHeartbeat, now), text(s.SessionID), text(s.AgentEngine), sentinelNote(s))
	}
}

// sentinelNote says what is odd about a sentinel.
func sentinelNote(s lessor.SentinelShown) string {
	switch {
	case !s.Valid:
		return "not obeyed: " + text(s.Error)
	case s.Hung:
		return "hung: it pulses without a lease"
	case !s.Known:
		return "the store does not know this job"
	}
	return ""
}

func printRecoveryMetrics(t table, r lessor.RecoveryMetrics, now time.Time) {
	t.row("node", r.Node)
	t.row("jobs", fmt.Sprint(r.TotalJobs))
	t.row("reattached", fmt.Sprint(r.ReattachedCount))
	t.row("dead", fmt.Sprint(r.FailedCount))
	if r.SuccessRate != nil {
		t.row("success", fmt.Sprintf("%.0f %%", 100**r.SuccessRate))
	}
	if r.AverageReattachSeconds != nil {
		t.row("found after", fmt.Sprintf("%.1fs", *r.AverageReattachSeconds))
	}
	t.row("last scan", fmt.Sprintf("%s, %d sentinels in %dms", ago(r.LastScan.At, now), r.LastScan.Sentinels, r.LastScan.DurationMS))
}

func printCleanups(t table, r lessor.Cleanups, now time.Time) {
	t.row("JOB", "STATUS", "DUE", "ENDED", "FOLDER", "REASON")
	for _, k := range r.Cleanups {
		t.row(k.JobID.String(), string(k.Status), until(k.DueAt, now), age(k.EndedAt, now), k.WorkspacePath, text(k.Reason))
	}
}
