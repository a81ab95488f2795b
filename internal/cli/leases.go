package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

func (a *app) leasesCommand() *cobra.Command {
	cmd := withList(a.reaching(&cobra.Command{
		Use:   "leases",
		Short: "List live leases; request, keep and end one by hand",
		Example: `  lessor leases --worker worker-1
  lessor leases request --worker me --type hello --wait 30s
  lessor leases heartbeat ID --worker me --progress 0.5
  lessor leases complete ID --worker me --result '{"sent":1}'`,
	}), "List live leases, newest first (the default)", "", a.bindLeases)
	cmd.AddCommand(a.leasesRequestCommand(), a.leasesHeartbeatCommand(), a.leasesCompleteCommand(),
		a.leasesReleaseCommand(), a.leasesRevokeCommand())
	return cmd
}

func (a *app) bindLeases(cmd *cobra.Command) {
	var worker string
	cmd.Flags().StringVar(&worker, "worker", "", "only leases of this worker")
	list[lessor.Lease]{
		name:   "leases",
		header: []string{"LEASE", "TYPE~", "WORKER~", "EXPIRES", "HEARTBEAT?", "AGE?", "UNITS?", "FENCE?", "JOB?"},
		row: func(l lessor.Lease, now time.Time) []string {
			return []string{
				l.ID.String(), l.Type, l.WorkerID, until(l.ExpiresAt, now), ago(l.LastHeartbeat, now),
				age(l.IssuedAt, now), fmt.Sprint(l.CapacityUnits), fmt.Sprint(l.Fence), l.JobID.String(),
			}
		},
		pages: unfiltered(func(
			c *client.Client, ctx context.Context, limit int, cursor string,
		) ([]lessor.Lease, string, error) {
			return c.Leases(ctx, worker, limit, cursor)
		}),
	}.bind(a, cmd)
}

func workerFlag(cmd *cobra.Command, worker *string) {
	cmd.Flags().StringVar(worker, "worker", "", "name of the worker that holds the lease (required)")
	require(cmd, "worker")
}

func (a *app) leasesRequestCommand() *cobra.Command {
	var worker string
	var types []string
	var wait, ttl duration
	var maxUnits int64
	cmd := &cobra.Command{
		Use:     "request",
		Short:   "Request a job, as a worker does",
		Long:    "Request asks for one job and prints its lease. If the server denies the request, the exit code is 1.",
		Example: `  lessor leases request --worker me --type hello --wait 30s`,
	}
	workerFlag(cmd, &worker)
	cmd.Flags().StringArrayVar(&types, "type", nil, "only jobs of this type; may be given several times")
	cmd.Flags().Var(&wait, "wait", "wait up to this long for a job, at most 30s")
	cmd.Flags().Var(&ttl, "ttl", "how long the lease lives without a heartbeat (default: the server's)")
	wholeVar(cmd, &maxUnits, "max-units", 0, "only jobs that need at most this many units")
	read := func(cmd *cobra.Command, _ []string) (lessor.LeaseRequest, error) {
		return lessor.LeaseRequest{
			WorkerID: &worker,
			Types:    types,
			MaxUnits: given(cmd, "max-units", maxUnits),
			WaitMS:   milliseconds(cmd, "wait", wait),
			TTLMS:    milliseconds(cmd, "ttl", ttl),
		}, nil
	}
	request := func(c *client.Client, ctx context.Context, r lessor.LeaseRequest) (granted, error) {
		return a.requestLease(ctx, c, r)
	}
	cmd.RunE = show(a, read, request, func(t *table.Table, g granted, now time.Time) {
		t.Row("lease", g.Lease.ID.String())
		t.Row("job", g.Job.ID.String())
		t.Row("type", g.Job.Type)
		t.Row("payload", string(g.Job.Payload))
		t.Row("expires", until(g.Lease.ExpiresAt, now)+", beat every "+millis(g.Lease.HeartbeatAfterMS))
	})
	return cmd
}

// granted is the answer to a lease request that was granted, in the shape of the API.
type granted struct {
	Denied bool `json:"denied"`
	lessor.Grant
}

// requestLease asks for one lease. With --json it prints a denial, which is an answer and an error.
func (a *app) requestLease(ctx context.Context, c *client.Client, r lessor.LeaseRequest) (granted, error) {
	grants, denial, err := c.Request(ctx, r)
	switch {
	case err != nil:
		return granted{}, err
	case denial == nil:
		return granted{Grant: grants[0]}, nil
	case a.json:
		if err := a.printJSON(denial); err != nil {
			return granted{}, err
		}
	}
	return granted{}, deniedError{*denial}
}

func (a *app) leasesHeartbeatCommand() *cobra.Command {
	var b lessor.Heartbeat
	var worker, message string
	var progress float64
	cmd := &cobra.Command{Use: "heartbeat ID", Short: "Keep a lease alive, as its worker does"}
	workerFlag(cmd, &worker)
	cmd.Flags().Float64Var(&progress, "progress", 0, "share of the work that is done, 0 to 1")
	cmd.Flags().StringVar(&message, "message", "", "description of the current step")
	read := func(cmd *cobra.Command, args []string) (lessor.LeaseID, error) {
		b = lessor.Heartbeat{
			WorkerID: &worker, Progress: given(cmd, "progress", progress), Message: given(cmd, "message", message),
		}
		return parseID[lessor.LeaseID]("lease", args[0])
	}
	beat := func(c *client.Client, ctx context.Context, id lessor.LeaseID) (lessor.HeartbeatAnswer, error) {
		return c.Heartbeat(ctx, id, b)
	}
	cmd.RunE = show(a, read, beat, func(t *table.Table, answer lessor.HeartbeatAnswer, now time.Time) {
		t.Row("expires " + until(answer.ExpiresAt, now) + ", beat again in " + millis(answer.HeartbeatAfterMS))
		if answer.CancelRequested {
			t.Row("cancellation of the job is requested: stop, and complete it with --status cancelled")
		}
	})
	return cmd
}

func (a *app) leasesCompleteCommand() *cobra.Command {
	var d lessor.Completion
	var worker, result, failure string
	status := string(lessor.Completed)
	var noRetry bool
	cmd := &cobra.Command{
		Use: "complete ID", Short: "End an attempt, as its worker does",
		Example: `  lessor leases complete ID --worker me --result '{"sent":1}'
  lessor leases complete ID --worker me --status failed --error 'no such user'`,
	}
	workerFlag(cmd, &worker)
	oneOf(cmd, &status, "status", "how it ended", lessor.Completed, lessor.Failed, lessor.Cancelled)
	cmd.Flags().StringVar(&result, "result", "", "result of the job: JSON, @FILE or - for standard input")
	cmd.Flags().StringVar(&failure, "error", "", "description of the failure")
	cmd.Flags().BoolVar(&noRetry, "no-retry", false, "make a failure final: do not retry")
	read := func(cmd *cobra.Command, args []string) (id lessor.LeaseID, err error) {
		if id, err = parseID[lessor.LeaseID]("lease", args[0]); err != nil {
			return id, err
		}
		d = lessor.Completion{WorkerID: &worker, Status: &status, Error: given(cmd, "error", failure)}
		if noRetry {
			d.Retryable = new(false)
		}
		if cmd.Flags().Changed("result") {
			d.Result, err = a.readJSON("--result", result)
		}
		return id, err
	}
	complete := order(func(c *client.Client, ctx context.Context, id lessor.LeaseID) error {
		return c.Complete(ctx, id, d)
	})
	cmd.RunE = show(a, read, complete, func(t *table.Table, _ accepted, _ time.Time) { t.Row(status) })
	return cmd
}

func (a *app) leasesReleaseCommand() *cobra.Command {
	var worker string
	var delay duration
	cmd := &cobra.Command{
		Use:   "release ID",
		Short: "Give a lease back, as its worker does",
		Long:  "Release returns the job to its place in the queue. The attempt does not count.",
	}
	workerFlag(cmd, &worker)
	cmd.Flags().Var(&delay, "delay", "how long the job waits before it may be granted again")
	release := order(func(c *client.Client, ctx context.Context, id lessor.LeaseID) error {
		return c.Release(ctx, id, lessor.Release{WorkerID: &worker, DelayMS: milliseconds(cmd, "delay", delay)})
	})
	cmd.RunE = show(a, idArg[lessor.LeaseID]("lease"), release, printWord("released"))
	return cmd
}

func (a *app) leasesRevokeCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "End the lease of a worker",
		Long:  "Revoke ends a lease: the attempt fails, and the job is retried as usual. It needs a token.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the job's record")
	revoke := order(func(c *client.Client, ctx context.Context, id lessor.LeaseID) error {
		return c.Revoke(ctx, id, reason)
	})
	cmd.RunE = show(a, idArg[lessor.LeaseID]("lease"), revoke, printWord("revoked"))
	return cmd
}
