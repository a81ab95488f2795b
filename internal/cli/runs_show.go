package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

// runShown is a run with what went wrong in it last.
type runShown struct {
	lessor.Run
	LastError *lessor.RunError `json:"lastError,omitempty"`
}

func (a *app) runsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show a run, with what went wrong in it last", Example: "  lessor runs show 0196a1b2-0000-7000-8000-00000000000a",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			u, err := parseID("run", args[0])
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			var shown runShown
			if shown.Run, err = c.Run(cmd.Context(), lessor.JobID{UUID: u}); err != nil {
				return err
			}
			if shown.LastErrorRef != "" {
				e, err := c.RunError(cmd.Context(), shown.LastErrorRef)
				if err != nil && !errors.Is(err, lessor.ErrErrorNotFound) { // retention may have come between
					return err
				}
				if err == nil {
					shown.LastError = &e
				}
			}
			if a.json {
				return a.printJSON(shown)
			}
			return a.showRun(shown, time.Now())
		}),
	}
}

func (a *app) showRun(r runShown, now time.Time) error {
	t := newTable(a.Out)
	t.row("run", r.RunID.String())
	t.row("definition", r.JobID)
	t.row("tenant", tenantName(r.TenantID))
	t.row("status", string(r.Status))
	t.row("attempts", fmt.Sprint(r.Attempts))
	t.row("started", fmt.Sprintf("%s (%s)", r.StartedAt, ago(r.StartedAt, now)))
	if !r.EndedAt.IsZero() {
		t.row("ended", fmt.Sprintf("%s (took %s)", r.EndedAt, took(r.Run)))
	}
	t.row("trace", r.TraceID)
	if e := r.LastError; e != nil {
		t.row("last error", e.Message)
		t.row("", fmt.Sprintf("%s, attempt %d, %s", e.Code, e.Attempt, ago(e.At, now)))
	}
	return t.flush()
}
