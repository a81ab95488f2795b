package cli

import (
	"github.com/spf13/cobra"

	"lessor"
)

type completeFlags struct {
	worker, status, result, failure string
	noRetry                         bool
}

func (a *app) leasesCompleteCommand() *cobra.Command {
	var f completeFlags
	cmd := &cobra.Command{
		Use: "complete ID", Short: "End an attempt, as its worker does", Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		Example: `  lessor leases complete ID --worker me --result '{"sent":1}'
  lessor leases complete ID --worker me --status failed --error 'no such address' --no-retry`,
	}
	workerFlag(cmd, &f.worker)
	cmd.Flags().StringVar(&f.status, "status", string(lessor.Completed), "completed, failed or cancelled")
	cmd.Flags().StringVar(&f.result, "result", "", "what came of it: JSON, @FILE or - for standard input")
	cmd.Flags().StringVar(&f.failure, "error", "", "what went wrong")
	cmd.Flags().BoolVar(&f.noRetry, "no-retry", false, "a failure is final: do not try again")
	completes(cmd, "status", oneOf(lessor.Completed, lessor.Failed, lessor.Cancelled))
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error { return a.completeLease(cmd, args[0], f) })
	return cmd
}

func (a *app) completeLease(cmd *cobra.Command, lease string, f completeFlags) error {
	id, err := leaseID(lease)
	if err != nil {
		return err
	}
	d := lessor.Completion{WorkerID: &f.worker, Status: &f.status, Error: given(cmd, "error", f.failure)}
	if f.noRetry {
		d.Retryable = new(false)
	}
	if cmd.Flags().Changed("result") {
		if d.Result, err = a.readJSON("--result", f.result); err != nil {
			return err
		}
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if err := c.Complete(cmd.Context(), id, d); err != nil {
		return err
	}
	return a.done(f.status)
}

// done prints that a call without an answer of its own was accepted.
func (a *app) done(what string) error {
	if a.json {
		return a.printJSON(struct {
			OK bool `json:"ok"`
		}{true})
	}
	a.say("%s", what)
	return nil
}
