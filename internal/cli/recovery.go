package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

func (a *app) recoveryCommand() *cobra.Command {
	status := show(a, noArgs, plain((*client.Client).RecoveryStatus), writeRecoveryStatus)
	cmd := a.reaching(&cobra.Command{
		Use:   "recovery",
		Short: "Show the commands in the server's workspace and their outcomes",
		Long: `Recovery shows what the server's monitor knows about the commands that lessor work runs in its workspace:
which are fresh, stale or dead, and which were found again after a restart. Each of several servers knows only its own
workspace; the answer names the node. All recovery commands need an admin token.`,
		Example: `  lessor recovery
  lessor recovery stale
  lessor recovery resume 0196a1b2-0000-7000-8000-00000000000a`,
		RunE: status,
	})
	cmd.AddCommand(
		&cobra.Command{Use: "status", Short: "Show what was found at the start and since (the default)", RunE: status},
		report(a, "list", "List commands with their verdicts", (*client.Client).JobHeartbeats, writeHeartbeats),
		report(a, "stale", "List the stale commands", (*client.Client).StaleJobs, writeStale),
		report(a, "failed", "List jobs whose command was found dead, newest first",
			(*client.Client).FailedJobs, writeFailed),
		report(a, "sentinels", "List sentinel files, also those that the server ignores",
			(*client.Client).Sentinels, writeSentinels),
		report(a, "metrics", "Count what was recovered since the server's start",
			(*client.Client).RecoveryMetrics, writeRecoveryMetrics),
		report(a, "cleanups", "List folders of dead commands that are to be or were removed",
			(*client.Client).Cleanups, writeCleanups),
		report(a, "scan", "Scan the whole workspace now", (*client.Client).ScanWorkspace, writeScanned),
		a.recoveryHealthCommand("health", "Check one job now, and show its verdict and its folder",
			(*client.Client).JobHealth),
		a.recoveryHealthCommand("mark-dead", "Give up a job: fail its attempt, stop its command",
			(*client.Client).MarkDead),
		a.recoveryResumeCommand(),
	)
	return cmd
}

// report is a command that shows one report.
func report[A any](
	a *app, use, short string, ask func(*client.Client, context.Context) (A, error), write render[A],
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  lessor recovery " + use, RunE: show(a, noArgs, plain(ask), write),
	}
}

func (a *app) recoveryHealthCommand(use, short string, ask call[lessor.JobID, lessor.JobHealth]) *cobra.Command {
	return &cobra.Command{
		Use: use + " JOB", Short: short, Example: "  lessor recovery " + use + " 0196a1b2-0000-7000-8000-00000000000a",
		RunE: show(a, idArg[lessor.JobID]("job"), ask, func(t *table.Table, h lessor.JobHealth, now time.Time) {
			t.Row("job", h.JobID.String())
			t.Row("heartbeat", string(h.HeartbeatStatus))
			t.Row("heard", age(h.LastHeartbeat, now))
			t.Row("sentinel", yesNo(h.SentinelFileExists))
			t.Row("folder", yesNo(h.WorkspaceExists))
			t.Row("session data", yesNo(h.SessionDataExists))
			t.Row("node", h.Node)
		}),
	}
}

func (a *app) recoveryResumeCommand() *cobra.Command {
	var fresh bool
	cmd := &cobra.Command{
		Use: "resume JOB", Short: "Create a new job from one that failed for good or is dead",
		Long: `Resume submits a new job with the payload and the last checkpoint of a job that failed for good or whose
command was found dead. The session files {session}.* in its folder are copied to the folder of the new job.`,
		Example: "  lessor recovery resume 0196a1b2-0000-7000-8000-00000000000a",
	}
	cmd.Flags().BoolVar(&fresh, "from-start", false, "start without the checkpoint")
	resume := func(c *client.Client, ctx context.Context, id lessor.JobID) (lessor.Resumed, error) {
		return c.ResumeJob(ctx, id, !fresh)
	}
	cmd.RunE = show(a, idArg[lessor.JobID]("job"), resume, func(t *table.Table, r lessor.Resumed, _ time.Time) {
		t.Row(r.NewJobID.String())
	})
	return cmd
}

func writeRecoveryStatus(t *table.Table, st lessor.RecoveryStatus, now time.Time) {
	s := st.Summary
	t.Row(fmt.Sprintf("%s is %s: %d watched, %d reattached, %d dead, of %d",
		st.Node, st.Recovery.State, s.Watching, s.Reattached, s.Dead, s.Total))
	if len(st.Jobs) > 0 {
		t.Head("JOB", "STATUS", "HEARD", "WATCHED")
	}
	for _, j := range st.Jobs {
		t.Row(j.JobID.String(), string(j.Status), age(j.LastHeartbeat, now), until(j.WatchDeadline, now))
	}
}

func writeScanned(t *table.Table, r lessor.Scanned, _ time.Time) {
	t.Row("node", r.Node)
	t.Row("sentinels", fmt.Sprint(r.Sentinels))
	t.Row("took", fmt.Sprintf("%dms", r.DurationMS))
}

func writeHeartbeats(t *table.Table, r lessor.JobHeartbeats, now time.Time) {
	t.None = "no commands in the workspace of " + r.Node
	t.Head("JOB", "STATUS", "HEARD", "SILENT", "ENGINE~")
	for _, j := range r.Jobs {
		silent := table.Span(time.Duration(j.AgeSeconds) * time.Second)
		t.Row(j.JobID.String(), string(j.Status), age(j.LastHeartbeat, now), silent, text(j.AgentEngine))
	}
}

func writeStale(t *table.Table, r lessor.StaleJobs, now time.Time) {
	t.None = "no stale commands in the workspace of " + r.Node
	t.Head("JOB", "HEARD", "MINUTES", "ACTION", "FOLDER+")
	for _, j := range r.StaleJobs {
		minutes := fmt.Sprintf("%.2f", j.AgeMinutes)
		t.Row(j.JobID.String(), age(j.LastHeartbeat, now), minutes, j.RecommendedAction, j.WorkspacePath)
	}
}

func writeFailed(t *table.Table, r lessor.FailedJobs, now time.Time) {
	t.None = "no jobs whose command was found dead"
	t.Head("JOB", "FAILED", "HEARD?", "RESUMABLE?", "REASON+")
	for _, j := range r.FailedJobs {
		t.Row(j.JobID.String(), ago(j.FailedAt, now), age(j.LastHeartbeat, now), yesNo(j.Resumable), j.Reason)
	}
}

func writeSentinels(t *table.Table, r lessor.Sentinels, now time.Time) {
	t.None = "no sentinel files in the workspace of " + r.Node
	t.Head("FOLDER~", "STATUS", "HEARD", "ENGINE?", "SESSION?", "NOTE+")
	for _, s := range r.Sentinels {
		t.Row(s.JobID, text((*string)(s.Status)), age(s.LastHeartbeat, now), text(s.AgentEngine), text(s.SessionID),
			sentinelNote(s))
	}
}

// sentinelNote says what is unusual about a sentinel.
func sentinelNote(s lessor.SentinelShown) string {
	switch {
	case !s.Valid:
		return "ignored: " + text(s.Error)
	case s.Hung:
		return "hung: it sends pulses without a lease"
	case !s.Known:
		return "the store does not know this job"
	}
	return ""
}

func writeRecoveryMetrics(t *table.Table, r lessor.RecoveryMetrics, now time.Time) {
	t.Row("node", r.Node)
	t.Row("jobs", fmt.Sprint(r.TotalJobs))
	t.Row("reattached", fmt.Sprint(r.ReattachedCount))
	t.Row("dead", fmt.Sprint(r.FailedCount))
	if r.SuccessRate != nil {
		t.Row("success", fmt.Sprintf("%.0f %%", 100**r.SuccessRate))
	}
	if r.AverageReattachSeconds != nil {
		t.Row("found after", fmt.Sprintf("%.1fs", *r.AverageReattachSeconds))
	}
	s := r.LastScan
	t.Row("last scan", fmt.Sprintf("%s, %d sentinels in %dms", ago(s.At, now), s.Sentinels, s.DurationMS))
}

func writeCleanups(t *table.Table, r lessor.Cleanups, now time.Time) {
	t.None = "no folders to remove, and none that were removed, in the workspace of " + r.Node
	t.Head("JOB", "STATUS", "DUE", "ENDED", "FOLDER?", "REASON+")
	for _, k := range r.Cleanups {
		t.Row(k.JobID.String(), string(k.Status), until(k.DueAt, now), age(k.EndedAt, now), k.WorkspacePath,
			text(k.Reason))
	}
}
