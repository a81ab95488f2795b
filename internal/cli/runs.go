package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

type runsFlags struct {
	job, tenant, status, trace string
	list                       listFlags
}

func (a *app) runsCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "runs",
		Short: "List the audit of runs; show one with its error",
		Example: `  lessor runs --job books.nightly
  lessor runs list --status FAILED --all
  lessor runs show 0196a1b2-…`,
		Args: cobra.NoArgs,
	})
	a.listsRuns(cmd)
	list := &cobra.Command{Use: "list", Short: "List runs, newest first (the default)", Example: "  lessor runs list --status FAILED", Args: cobra.NoArgs}
	a.listsRuns(list)
	cmd.AddCommand(list, a.runsShowCommand())
	return cmd
}

// listsRuns makes cmd the list of runs: `runs` and `runs list` are the same.
func (a *app) listsRuns(cmd *cobra.Command) {
	var f runsFlags
	cmd.Flags().StringVar(&f.job, "job", "", "only runs of this definition")
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "only runs of this tenant")
	cmd.Flags().StringVar(&f.status, "status", "", "only runs with this status")
	cmd.Flags().StringVar(&f.trace, "trace", "", "only runs of this trace")
	f.list.add(cmd, "runs")
	completes(cmd, "status", oneOf(lessor.RunStatuses()...))
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error { return a.runs(cmd, f) })
}

func (a *app) runs(cmd *cobra.Command, f runsFlags) error {
	filter := lessor.RunFilter{JobID: f.job, Status: lessor.RunStatus(f.status), Trace: f.trace}
	var err error
	if filter.Tenant, err = tenantFlag(f.tenant); err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	now := time.Now()
	return list[lessor.Run]{
		name: "runs", cursor: kernelCursor,
		header: []string{"RUN", "DEFINITION", "STATUS", "ATTEMPTS", "STARTED", "TOOK", "TENANT", "TRACE"},
		row: func(r lessor.Run) []string {
			return []string{
				r.RunID.String(), r.JobID, string(r.Status), fmt.Sprint(r.Attempts), ago(r.StartedAt, now), took(r), tenantName(r.TenantID), r.TraceID,
			}
		},
		page: func(limit int, cursor string) ([]lessor.Run, string, error) {
			filter.Limit, filter.Cursor = limit, cursor
			return c.Runs(cmd.Context(), filter)
		},
	}.show(a, f.list)
}

// took tells how long a run that has ended was under way.
func took(r lessor.Run) string {
	if r.EndedAt.IsZero() {
		return ""
	}
	return span(r.EndedAt.Sub(r.StartedAt))
}
