package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) jobsCancelCommand() *cobra.Command {
	var force bool
	cmd := a.jobsVerb(&cobra.Command{
		Use:   "cancel [ID…]",
		Short: "Cancel jobs, by id or by filter",
		Long: `Cancel ends a job that waits at once. The worker of one that runs is asked to stop; the job ends when the worker
obeys or its lease lapses. With --force the lease is taken away now.

Jobs are named by their ids, or chosen by --state, --type, --tenant and --tag: then all that match are counted first, and nothing is
done until you say yes.`,
		Example: `  lessor jobs cancel 0196a1b2-…
  lessor jobs cancel --state queued --type mail`,
	}, &bulk{verb: "cancel", do: func(ctx context.Context, c *client.Client, id lessor.JobID) (lessor.Job, error) {
		return c.Cancel(ctx, id, force)
	}})
	cmd.Flags().BoolVar(&force, "force", false, "take the lease away now instead of asking the worker")
	return cmd
}

// eachJob does something to each job named, goes on after a refusal, and prints what became of each.
func (a *app) eachJob(cmd *cobra.Command, args []string, do func(context.Context, *client.Client, lessor.JobID) (lessor.Job, error)) error {
	ids, err := jobIDs(args)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	var errs []error
	done := struct {
		Jobs []lessor.Job `json:"jobs"`
	}{Jobs: []lessor.Job{}}
	for _, id := range ids {
		job, err := do(cmd.Context(), c, id)
		if err != nil {
			errs = append(errs, subjectError{"job " + id.String(), err})
			if exitCode(err) == exitFault {
				break // the next would fail alike
			}
			continue
		}
		done.Jobs = append(done.Jobs, job)
		if !a.json {
			a.say("%s %s", id, outcome(job))
		}
	}
	if a.json {
		errs = append(errs, a.printJSON(done))
	}
	return errors.Join(errs...)
}

// outcome names a job's state, and what was asked of it.
func outcome(j lessor.Job) string {
	if j.CancelRequested && j.State != lessor.Cancelled {
		return string(j.State) + ", cancel requested"
	}
	return string(j.State)
}
