package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) recoveryCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "recovery",
		Short: "Show how commands in the server's workspace are, and what became of them",
		Long: `Recovery tells what the server's monitor knows about the commands that lessor work runs in its workspace: which are fresh,
stale or dead, and which were found again after a restart. With several servers each knows its own workspace; the answer
names the node. All of it needs an admin token.`,
		Example: `  lessor recovery
  lessor recovery stale
  lessor recovery resume 0196a1b2-0000-7000-8000-00000000000a`,
		Args: cobra.NoArgs,
		RunE: a.run(a.recoveryStatus),
	})
	cmd.AddCommand(
		&cobra.Command{Use: "status", Short: "Show what was found at the start and since (the default)", Args: cobra.NoArgs, RunE: a.run(a.recoveryStatus)},
		reports(a, "list", "List commands with the verdict on each", (*client.Client).JobHeartbeats, printHeartbeats),
		reports(a, "stale", "List commands that are silent for too long", (*client.Client).StaleJobs, printStale),
		reports(a, "failed", "List jobs whose command was found dead, newest first", (*client.Client).FailedJobs, printFailed),
		reports(a, "sentinels", "List sentinel files, also those that are not obeyed", (*client.Client).Sentinels, printSentinels),
		reports(a, "metrics", "Count what was recovered since the server's start", (*client.Client).RecoveryMetrics, printRecoveryMetrics),
		reports(a, "cleanups", "List folders of dead commands that are or were removed", (*client.Client).Cleanups, printCleanups),
		reports(a, "scan", "Look at the whole workspace now", (*client.Client).ScanWorkspace, printScanned),
		a.recoveryHealthCommand("health", "Show what the workspace says about a job", (*client.Client).JobHealth),
		a.recoveryHealthCommand("mark-dead", "Give up a job: its attempt fails, its command is told to stop, its folder goes", (*client.Client).MarkDead),
		a.recoveryResumeCommand(),
	)
	return cmd
}

// reports is a command that shows one report.
func reports[T any](a *app, use, short string, read func(*client.Client, context.Context) (T, error), show func(table, T, time.Time)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  lessor recovery " + use, Args: cobra.NoArgs,
		RunE: a.run(func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			report, err := read(c, cmd.Context())
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(report)
			}
			t := newTable(a.Out)
			show(t, report, time.Now())
			return t.flush()
		}),
	}
}

func (a *app) recoveryStatus(cmd *cobra.Command, _ []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	st, err := c.RecoveryStatus(cmd.Context())
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(st)
	}
	a.say("%s is %s: %d watched, %d reattached, %d dead, of %d", st.Node, st.Recovery.State, st.Summary.Watching, st.Summary.Reattached, st.Summary.Dead, st.Summary.Total)
	t, now := newTable(a.Out), time.Now()
	if len(st.Jobs) > 0 {
		t.row("JOB", "STATUS", "HEARD", "WATCHED")
	}
	for _, j := range st.Jobs {
		t.row(j.JobID.String(), string(j.Status), age(j.LastHeartbeat, now), until(j.WatchDeadline, now))
	}
	return t.flush()
}

func (a *app) recoveryHealthCommand(use, short string, call func(*client.Client, context.Context, lessor.JobID) (lessor.JobHealth, error)) *cobra.Command {
	return &cobra.Command{
		Use: use + " JOB", Short: short, Example: "  lessor recovery " + use + " 0196a1b2-0000-7000-8000-00000000000a",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			ids, err := jobIDs(args)
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			h, err := call(c, cmd.Context(), ids[0])
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(h)
			}
			t := newTable(a.Out)
			t.row("job", h.JobID.String())
			t.row("heartbeat", string(h.HeartbeatStatus))
			t.row("heard", age(h.LastHeartbeat, time.Now()))
			t.row("sentinel", yesNo(h.SentinelFileExists))
			t.row("folder", yesNo(h.WorkspaceExists))
			t.row("session data", yesNo(h.SessionDataExists))
			t.row("node", h.Node)
			return t.flush()
		}),
	}
}

func (a *app) recoveryResumeCommand() *cobra.Command {
	var fresh bool
	cmd := &cobra.Command{
		Use: "resume JOB", Short: "Make a new job from one that failed for good or is dead, and print its id",
		Long:    "Resume submits a new job with the payload of one that failed for good, or whose command was found dead. It begins with the last checkpoint of the old one.",
		Example: "  lessor recovery resume 0196a1b2-0000-7000-8000-00000000000a",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&fresh, "from-start", false, "begin without the checkpoint")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		ids, err := jobIDs(args)
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		resumed, err := c.ResumeJob(cmd.Context(), ids[0], !fresh)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.printJSON(resumed)
		}
		a.say("%s", resumed.NewJobID)
		return nil
	})
	return cmd
}

func printScanned(t table, r lessor.Scanned, _ time.Time) {
	t.row("node", r.Node)
	t.row("sentinels", fmt.Sprint(r.Sentinels))
	t.row("took", fmt.Sprintf("%dms", r.DurationMS))
}
