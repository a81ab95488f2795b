package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) schedulesShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show everything about a definition", Example: "  lessor schedules show books.nightly",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			d, err := c.Definition(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(d)
			}
			return a.showDefinition(d, time.Now())
		}),
	}
}

func (a *app) showDefinition(d lessor.Definition, now time.Time) error {
	t := newTable(a.Out)
	seconds := func(n int64) string { return (&duration{time.Duration(n) * time.Second}).String() }
	t.row("definition", d.JobID)
	t.row("tenant", tenantName(d.TenantID))
	t.row("module", text(d.ModuleID))
	t.row("schedule", scheduleText(d))
	if d.NextTickAt.IsZero() {
		t.row("next tick", "none: "+standing(d))
	} else {
		t.row("next tick", fmt.Sprintf("%s (%s)", d.NextTickAt, until(d.NextTickAt, now)))
	}
	t.row("handler", d.HandlerID)
	t.row("payload", string(d.Payload))
	t.row("lock", d.LockKey)
	t.row("priority", d.Priority.String())
	t.row("units", fmt.Sprint(d.RequestedUnits))
	t.row("class", d.FairnessClass)
	t.row("timeout", seconds(d.TimeoutSeconds))
	t.row("attempts", fmt.Sprint(d.MaxAttempts))
	t.row("backoff", fmt.Sprintf("%d ms to %d ms", d.Backoff.FirstMS, d.Backoff.MaxMS))
	t.row("overlap", string(d.Overlap))
	t.row("catch up", fmt.Sprintf("%s within %s", d.CatchUp, seconds(d.CatchUpWindowSeconds)))
	if d.JitterSeconds > 0 {
		t.row("jitter", "up to "+seconds(d.JitterSeconds))
	}
	t.row("circuit", fmt.Sprintf("opens after %d failures for %s", d.Circuit.Failures, seconds(d.Circuit.CooldownSeconds)))
	t.row("created", fmt.Sprintf("%s (%s)", d.CreatedAt, ago(d.CreatedAt, now)))
	t.row("updated", fmt.Sprintf("%s (%s)", d.UpdatedAt, ago(d.UpdatedAt, now)))
	return t.flush()
}
