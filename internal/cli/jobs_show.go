package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) jobsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show everything about a job", Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			ids, err := jobIDs(args)
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			job, err := c.Job(cmd.Context(), ids[0])
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(job)
			}
			return a.showJob(job, time.Now())
		}),
	}
}

// showJob prints a job's fields; those that say nothing are left out.
func (a *app) showJob(j lessor.Job, now time.Time) error {
	t := newTable(a.Out)
	line := func(name, value string) {
		if value != "" && value != "-" && value != "null" {
			t.row(name, value)
		}
	}
	at := func(name string, i lessor.Instant) {
		if !i.IsZero() {
			t.row(name, fmt.Sprintf("%s (%s)", i, ago(i, now)))
		}
	}
	line("job", j.ID.String())
	line("type", j.Type)
	line("state", string(j.State))
	line("priority", j.Priority.String())
	line("units", fmt.Sprint(j.RequestedUnits))
	line("attempt", fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts))
	line("tenant", tenantName(j.TenantID))
	line("class", j.FairnessClass)
	line("tags", strings.Join(j.Tags, ", "))
	line("key", text(j.IdempotencyKey))
	line("lock", text(j.LockKey))
	if j.Unique {
		line("unique", "yes")
	}
	if j.MaxRuntimeS != nil {
		line("max runtime", span(time.Duration(*j.MaxRuntimeS)*time.Second))
	}
	if j.LeaseID != nil {
		line("lease", j.LeaseID.String())
	}
	if j.CancelRequested {
		line("cancel", "requested")
	}
	at("created", j.CreatedAt)
	at("updated", j.UpdatedAt)
	at("run at", j.RunAt)
	at("retry at", j.RetryAt)
	if j.Progress != nil {
		line("progress", fmt.Sprintf("%.0f %%", *j.Progress*100))
	}
	line("message", text(j.Message))
	line("error", text(j.Error))
	if j.Interruptions > 0 {
		line("interruptions", fmt.Sprint(j.Interruptions))
	}
	line("payload", string(j.Payload))
	line("checkpoint", string(j.Checkpoint))
	line("result", string(j.Result))
	line("trace", j.TraceID)
	return t.flush()
}

// ago tells where an instant is, seen from now.
func ago(i lessor.Instant, now time.Time) string {
	if i.Time().After(now) {
		return until(i, now)
	}
	return age(i, now) + " ago"
}
