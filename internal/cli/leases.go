package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
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
		header: []string{"LEASE", "JOB", "WORKER", "UNITS", "FENCE", "AGE", "HEARTBEAT", "EXPIRES"},
		row: func(l lessor.Lease, now time.Time) []string {
			return []string{
				l.ID.String(), l.JobID.String(), l.WorkerID, fmt.Sprint(l.CapacityUnits), fmt.Sprint(l.Fence),
				age(l.IssuedAt, now), ago(l.LastHeartbeat, now), until(l.ExpiresAt, now),
			}
		},
		pages: unfiltered(func(c *client.Client, ctx context.Context, limit int, cursor string) ([]lessor.Lease, string, error) {
			return c.Leases(ctx, worker, limit, cursor)
		}),
	}.bind(a, cmd)
}

// workerFlag is the worker in whose name a lease is held.
func workerFlag(cmd *cobra.Command, worker *string) {
	cmd.Flags().StringVar(worker, "worker", "", "worker in whose name the lease is held (required)")
	require(cmd, "worker")
}

func (a *app) leasesRequestCommand() *cobra.Command {
	var worker string
	var types []string
	var wait, ttl duration
	var maxUnits int64
	cmd := &cobra.Command{
		Use:     "request",
		Short:   "Ask for a job, as a worker does",
		Long:    "Request asks for one job and prints its lease. A denial is not an error, but there is no lease then: the exit code is 1.",
		Example: `  lessor leases request --worker me --type hello --wait 30s`,
	}
	workerFlag(cmd, &worker)
	cmd.Flags().StringArrayVar(&types, "type", nil, "only jobs of this type; may be given several times")
	cmd.Flags().Var(&wait, "wait", "wait up to this long for a job, at most 30s")
	cmd.Flags().Var(&ttl, "ttl", "how long the lease lives without a heartbeat (default: the server's)")
	cmd.Flags().Int64Var(&maxUnits, "max-units", 0, "only jobs that need at most this many units")
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
	cmd.RunE = show(a, read, request, func(t table, g granted, now time.Time) {
		t.row("lease", g.Lease.ID.String())
		t.row("job", g.Job.ID.String())
		t.row("type", g.Job.Type)
		t.row("payload", string(g.Job.Payload))
		t.row("expires", until(g.Lease.ExpiresAt, now)+", beat every "+millis(g.Lease.HeartbeatAfterMS))
	})
	return cmd
}

// granted is the answer to a lease request that was granted, in the shape of the API.
type granted struct {
	Denied bool `json:"denied"`
	lessor.Grant
}

// requestLease asks for one lease. It prints a denial itself, because that is an answer and an exit code too.
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
	cmd.Flags().Float64Var(&progress, "progress", 0, "how far the work is, 0 to 1")
	cmd.Flags().StringVar(&message, "message", "", "what the work is at")
	read := func(cmd *cobra.Command, args []string) (lessor.LeaseID, error) {
		b = lessor.Heartbeat{
			WorkerID: &worker, Progress: given(cmd, "progress", progress), Message: given(cmd, "message", message),
		}
		return parseID[lessor.LeaseID]("lease", args[0])
	}
	beat := func(c *client.Client, ctx context.Context, id lessor.LeaseID) (lessor.HeartbeatAnswer, error) {
		return c.Heartbeat(ctx, id, b)
	}
	cmd.RunE = show(a, read, beat, func(t table, answer lessor.HeartbeatAnswer, now time.Time) {
		t.row("expires " + until(answer.ExpiresAt, now) + ", beat again in " + millis(answer.HeartbeatAfterMS))
		if answer.CancelRequested {
			t.row("the job's cancellation is requested: stop, and complete it with --status cancelled")
		}
	})
	return cmd
}

func (a *app) leasesCompleteCommand() *cobra.Command {
	var d lessor.Completion
	var worker, status, result, failure string
	var noRetry bool
	cmd := &cobra.Command{
		Use: "complete ID", Short: "End an attempt, as its worker does",
		Example: `  lessor leases complete ID --worker me --result '{"sent":1}'
  lessor leases complete ID --worker me --status failed --error 'no such address' --no-retry`,
	}
	workerFlag(cmd, &worker)
	cmd.Flags().StringVar(&status, "status", string(lessor.Completed), "completed, failed or cancelled")
	cmd.Flags().StringVar(&result, "result", "", "what came of it: JSON, @FILE or - for standard input")
	cmd.Flags().StringVar(&failure, "error", "", "what went wrong")
	cmd.Flags().BoolVar(&noRetry, "no-retry", false, "a failure is final: do not try again")
	completes(cmd, "status", oneOf(lessor.Completed, lessor.Failed, lessor.Cancelled))
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
	complete := order(func(c *client.Client, ctx context.Context, id lessor.LeaseID) error { return c.Complete(ctx, id, d) })
	cmd.RunE = show(a, read, complete, func(t table, _ accepted, _ time.Time) { t.row(status) })
	return cmd
}

func (a *app) leasesReleaseCommand() *cobra.Command {
	var worker string
	var delay duration
	cmd := &cobra.Command{
		Use:   "release ID",
		Short: "Give a lease back, as its worker does",
		Long:  "Release puts the job back in its place. The attempt does not count.",
	}
	workerFlag(cmd, &worker)
	cmd.Flags().Var(&delay, "delay", "how long the job waits before it may be granted again")
	release := order(func(c *client.Client, ctx context.Context, id lessor.LeaseID) error {
		return c.Release(ctx, id, lessor.Release{WorkerID: &worker, DelayMS: milliseconds(cmd, "delay", delay)})
	})
	cmd.RunE = show(a, idArg[lessor.LeaseID]("lease"), release, said("released"))
	return cmd
}

func (a *app) leasesRevokeCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Take a lease away from its worker",
		Long:  "Revoke ends a lease: the attempt fails and is tried again as usual. It needs a token.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the job's record")
	revoke := order(func(c *client.Client, ctx context.Context, id lessor.LeaseID) error { return c.Revoke(ctx, id, reason) })
	cmd.RunE = show(a, idArg[lessor.LeaseID]("lease"), revoke, said("revoked"))
	return cmd
}
