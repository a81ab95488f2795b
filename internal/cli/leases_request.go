package cli

import (
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

type requestFlags struct {
	worker    string
	types     []string
	wait, ttl duration
	maxUnits  int64
}

func (a *app) leasesRequestCommand() *cobra.Command {
	var f requestFlags
	cmd := &cobra.Command{
		Use:     "request",
		Short:   "Ask for a job, as a worker does",
		Long:    "Request asks for one job and prints its lease. A denial is not an error, but there is no lease then: the exit code is 1.",
		Example: `  lessor leases request --worker me --type hello --wait 30s`,
		Args:    cobra.NoArgs,
	}
	workerFlag(cmd, &f.worker)
	cmd.Flags().StringArrayVar(&f.types, "type", nil, "only jobs of this type; may be given several times")
	cmd.Flags().Var(&f.wait, "wait", "wait up to this long for a job, at most 30s")
	cmd.Flags().Var(&f.ttl, "ttl", "how long the lease lives without a heartbeat (default: the server's)")
	cmd.Flags().Int64Var(&f.maxUnits, "max-units", 0, "only jobs that need at most this many units")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error { return a.requestLease(cmd, f) })
	return cmd
}

func (a *app) requestLease(cmd *cobra.Command, f requestFlags) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	grants, denial, err := c.Request(cmd.Context(), lessor.LeaseRequest{
		WorkerID: &f.worker,
		Types:    f.types,
		MaxUnits: given(cmd, "max-units", f.maxUnits),
		WaitMS:   milliseconds(cmd, "wait", f.wait),
		TTLMS:    milliseconds(cmd, "ttl", f.ttl),
	})
	if err != nil {
		return err
	}
	if denial != nil {
		if a.json {
			if err := a.printJSON(denial); err != nil {
				return err
			}
		}
		return deniedError{*denial}
	}
	g := grants[0]
	if a.json {
		return a.printJSON(struct {
			Denied bool `json:"denied"`
			lessor.Grant
		}{Grant: g})
	}
	t := newTable(a.Out)
	t.row("lease", g.Lease.ID.String())
	t.row("job", g.Job.ID.String())
	t.row("type", g.Job.Type)
	t.row("payload", string(g.Job.Payload))
	t.row("expires", until(g.Lease.ExpiresAt, time.Now())+", beat every "+span(time.Duration(g.Lease.HeartbeatAfterMS)*time.Millisecond))
	return t.flush()
}
