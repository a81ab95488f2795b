package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

type jobsFlags struct {
	filter jobFilterFlags
	list   listFlags
}

func (a *app) jobsCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "jobs",
		Short: "List jobs; show or explain one, cancel or retry some",
		Example: `  lessor jobs
  lessor jobs list --state failed --type mail --all
  lessor jobs why 0196a1b2-…`,
		Args: cobra.NoArgs,
	})
	a.listsJobs(cmd)
	list := &cobra.Command{Use: "list", Short: "List jobs, newest first (the default)", Args: cobra.NoArgs}
	a.listsJobs(list)
	cmd.AddCommand(list, a.jobsShowCommand(), a.jobsEventsCommand(), a.jobsWhyCommand(), a.jobsCancelCommand(), a.jobsRetryCommand())
	return cmd
}

// listsJobs makes cmd the list of jobs: `jobs` and `jobs list` are the same.
func (a *app) listsJobs(cmd *cobra.Command) {
	var f jobsFlags
	f.filter.add(cmd)
	f.list.add(cmd, "jobs")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error { return a.jobs(cmd, f) })
}

func (a *app) jobs(cmd *cobra.Command, f jobsFlags) error {
	filter, err := f.filter.filter()
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	now := time.Now()
	return list[lessor.Job]{
		name:   "jobs",
		header: []string{"JOB", "TYPE", "STATE", "PRIORITY", "UNITS", "ATTEMPT", "TENANT", "AGE", "NOTE"},
		row: func(j lessor.Job) []string {
			return []string{
				j.ID.String(), j.Type, string(j.State), j.Priority.String(), fmt.Sprint(j.RequestedUnits),
				fmt.Sprintf("%d/%d", j.Attempt, j.MaxAttempts), tenantName(j.TenantID), age(j.CreatedAt, now), jobNote(j, now),
			}
		},
		page: func(limit int, cursor string) ([]lessor.Job, string, error) {
			filter.Limit, filter.Cursor = limit, cursor
			return c.Jobs(cmd.Context(), filter)
		},
	}.show(a, f.list)
}

// jobNote says what is special about a job now.
func jobNote(j lessor.Job, now time.Time) string {
	switch {
	case j.CancelRequested && j.State != lessor.Cancelled:
		return "cancel requested"
	case !j.RetryAt.IsZero():
		return "retry " + until(j.RetryAt, now)
	case j.State == lessor.Queued && j.RunAt.Time().After(now):
		return "due " + until(j.RunAt, now)
	case j.State == lessor.Running && j.Progress != nil:
		return fmt.Sprintf("%.0f %% %s", *j.Progress*100, text(j.Message))
	}
	return ""
}
