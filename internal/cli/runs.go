package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

func (a *app) runsCommand() *cobra.Command {
	cmd := withList(a.reaching(&cobra.Command{
		Use:   "runs",
		Short: "List the audit of runs; show one with its last error",
		Example: `  lessor runs --job books.nightly
  lessor runs list --status FAILED --all
  lessor runs show 0196a1b2-…`,
	}), "List runs, newest first (the default)", "  lessor runs list --status FAILED", a.bindRuns)
	cmd.AddCommand(&cobra.Command{
		Use: "show ID", Short: "Show a run with its last error",
		Example: "  lessor runs show 0196a1b2-0000-7000-8000-00000000000a",
		RunE: show(a, idArg[lessor.JobID]("run"), func(
			c *client.Client, ctx context.Context, id lessor.JobID,
		) (runWithError, error) {
			return readRun(ctx, c, id)
		}, writeRun),
	})
	return cmd
}

func (a *app) bindRuns(cmd *cobra.Command) {
	var job, tenant, status, trace string
	cmd.Flags().StringVar(&job, "job", "", "only runs of this definition")
	cmd.Flags().StringVar(&tenant, "tenant", "", "only runs of this tenant")
	oneOf(cmd, &status, "status", "only runs with this status", lessor.RunStatuses()...)
	cmd.Flags().StringVar(&trace, "trace", "", "only runs of this trace")
	list[lessor.Run]{
		name: "runs", cursor: camelCursor,
		hint: func() string {
			if status != "" {
				return ""
			}
			return ": a run begins with the first claim of its job; --status QUEUED lists those that wait for one"
		},
		header: []string{"RUN", "DEFINITION~", "STATUS", "STARTED?", "TOOK?", "ATTEMPTS?", "TENANT?", "TRACE?"},
		row: func(r lessor.Run, now time.Time) []string {
			return []string{
				r.RunID.String(), definitionOf(r), string(r.Status), ago(r.StartedAt, now), took(r),
				fmt.Sprint(r.Attempts),
				tenantName(r.TenantID), r.TraceID,
			}
		},
		pages: func([]string) (pager[lessor.Run], error) {
			id, err := tenantFlag(tenant)
			f := lessor.RunFilter{JobID: job, Tenant: id, Status: lessor.RunStatus(status), Trace: trace}
			return func(c *client.Client, ctx context.Context, limit int, cursor string) ([]lessor.Run, string, error) {
				f.Limit, f.Cursor = limit, cursor
				return c.Runs(ctx, f)
			}, err
		},
	}.bind(a, cmd)
}

// definitionOf returns the definition that a run belongs to. The run of a plain job has its own id there, and no
// definition.
func definitionOf(r lessor.Run) string {
	if r.JobID == r.RunID.String() {
		return ""
	}
	return r.JobID
}

// took returns the duration of a run that has ended.
func took(r lessor.Run) string {
	if r.EndedAt.IsZero() || r.StartedAt.IsZero() {
		return ""
	}
	return table.Span(r.EndedAt.Sub(r.StartedAt))
}

// runWithError is a run and its last error.
type runWithError struct {
	lessor.Run
	LastError *lessor.RunError `json:"lastError,omitempty"`
}

func readRun(ctx context.Context, c *client.Client, id lessor.JobID) (r runWithError, err error) {
	if r.Run, err = c.Run(ctx, id); err != nil || r.LastErrorRef == "" {
		return r, err
	}
	e, err := c.RunError(ctx, r.LastErrorRef)
	switch {
	case err == nil:
		r.LastError = &e
	case !errors.Is(err, lessor.ErrErrorNotFound): // retention may have removed it in between
		return r, err
	}
	return r, nil
}

func writeRun(t *table.Table, r runWithError, now time.Time) {
	t.Row("run", r.RunID.String())
	t.Row("definition", definitionOf(r.Run))
	t.Row("tenant", tenantName(r.TenantID))
	t.Row("status", string(r.Status))
	t.Row("attempts", fmt.Sprint(r.Attempts))
	if r.StartedAt.IsZero() {
		t.Row("started", "never: no worker has claimed it")
	} else {
		t.Row("started", fmt.Sprintf("%s (%s)", r.StartedAt, ago(r.StartedAt, now)))
	}
	if !r.EndedAt.IsZero() && !r.StartedAt.IsZero() {
		t.Row("ended", fmt.Sprintf("%s (took %s)", r.EndedAt, took(r.Run)))
	}
	t.Row("trace", r.TraceID)
	if e := r.LastError; e != nil {
		t.Row("last error", fmt.Sprintf("%s\n(%s, attempt %d, %s)", e.Message, e.Code, e.Attempt, ago(e.At, now)))
	}
}
