package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/internal/executor"
)

func (a *app) runOneCommand() *cobra.Command {
	f := workFlags{concurrency: 1, onStop: string(executor.OnStopStop)}
	var lease string
	cmd := a.reaching(&cobra.Command{
		Use:   "run-one --lease ID --worker NAME [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command for one lease, as a container's entry point",
		Long: `Run-one runs a command for the job of one lease, as "lessor work" does, and exits when the end is
reported. It is the entry point of a container that is started for one job: the program that starts containers requests
the lease, with "lessor leases request" or by the API, and passes on its id and the worker's name.

The exit code is 0 if the job is completed, 4 if the attempt failed, 5 if the job was cancelled, and 1 if the job was
given back, waits for an answer, or the lease was over. If the command cannot be started, the job is given back, and the
exit code is 2. The server retries the job: the platform must not.

A signal stops the command, and the job goes back to the queue with its last checkpoint and loses no attempt.`,
		Example: `  lessor run-one --lease "$LEASE" --worker pod-7 -- ./render.sh
  LESSOR_LEASE_ID=$LEASE LESSOR_WORKER=pod-7 lessor run-one -- ./render.sh`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeFiles, DisableFlagsInUseLine: true,
	})
	f.bind(cmd)
	cmd.Flags().StringVar(&lease, "lease", "", "lease to run the command for (LESSOR_LEASE_ID)")
	cmd.Flags().StringVar(&f.worker, "worker", "",
		"name with which the lease was requested, of this container alone (LESSOR_WORKER)")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		f.worker = cmp.Or(f.worker, a.getenv("LESSOR_WORKER"))
		return a.runOne(cmd, args, f, cmp.Or(lease, a.getenv("LESSOR_LEASE_ID")))
	})
	return cmd
}

func (a *app) runOne(cmd *cobra.Command, command []string, f workFlags, lease string) error {
	if lease == "" || f.worker == "" {
		return usagef("--lease and --worker are required: request a lease with `lessor leases request --worker NAME`")
	}
	id, err := parseID[lessor.LeaseID]("lease", lease)
	if err != nil {
		return err
	}
	r, _, err := a.runner(command, f)
	if err != nil {
		a.giveBack(cmd.Context(), id, f.worker)
		return err
	}
	defer func() { _ = r.Close() }() // nothing is left to write
	job, err := r.RunOne(cmd.Context(), id)
	switch {
	case err != nil || job.State == lessor.Completed:
		return err
	case job.State == lessor.Waiting:
		return refusedError{errors.New("the job waits for an answer: the next attempt has it")}
	case job.State == "":
		return refusedError{fmt.Errorf("the job was given back, or its lease was over: see `lessor jobs show %s`",
			job.ID)}
	}
	return endedError{job}
}

// giveBackDelay is the delay of a job that could not be started here.
const giveBackDelay = 5 * time.Second

// giveBack releases a lease for which nothing can be run here. The job loses no attempt.
func (a *app) giveBack(ctx context.Context, id lessor.LeaseID, worker string) {
	c, err := a.client()
	if err == nil {
		defer c.Close()
		err = c.Release(ctx, id, lessor.Release{
			WorkerID: &worker, DelayMS: new(giveBackDelay.Milliseconds()), Reason: new(lessor.ReleaseCannotStart),
		})
	}
	if err != nil {
		a.note("the lease could not be given back: %v", err)
		return
	}
	a.note("the job was given back")
}
