package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) leasesCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "leases",
		Short: "List live leases; request, keep and end one by hand",
		Example: `  lessor leases --worker worker-1
  lessor leases request --worker me --type hello --wait 30s
  lessor leases heartbeat ID --worker me --progress 0.5
  lessor leases complete ID --worker me --result '{"sent":1}'`,
		Args: cobra.NoArgs,
	})
	a.listsLeases(cmd)
	list := &cobra.Command{Use: "list", Short: "List live leases, newest first (the default)", Args: cobra.NoArgs}
	a.listsLeases(list)
	cmd.AddCommand(list, a.leasesRequestCommand(), a.leasesHeartbeatCommand(), a.leasesCompleteCommand(),
		a.leasesReleaseCommand(), a.leasesRevokeCommand())
	return cmd
}

// listsLeases makes cmd the list of leases: `leases` and `leases list` are the same.
func (a *app) listsLeases(cmd *cobra.Command) {
	var worker string
	var f listFlags
	cmd.Flags().StringVar(&worker, "worker", "", "only leases of this worker")
	f.add(cmd, "leases")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error { return a.leases(cmd, worker, f) })
}

func (a *app) leases(cmd *cobra.Command, worker string, f listFlags) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	now := time.Now()
	return list[lessor.Lease]{
		name:   "leases",
		header: []string{"LEASE", "JOB", "WORKER", "UNITS", "FENCE", "AGE", "HEARTBEAT", "EXPIRES"},
		row: func(l lessor.Lease) []string {
			return []string{
				l.ID.String(), l.JobID.String(), l.WorkerID, fmt.Sprint(l.CapacityUnits), fmt.Sprint(l.Fence),
				age(l.IssuedAt, now), ago(l.LastHeartbeat, now), until(l.ExpiresAt, now),
			}
		},
		page: func(limit int, cursor string) ([]lessor.Lease, string, error) {
			return c.Leases(cmd.Context(), worker, limit, cursor)
		},
	}.show(a, f)
}

// workerFlag is the worker in whose name a lease is held.
func workerFlag(cmd *cobra.Command, worker *string) {
	cmd.Flags().StringVar(worker, "worker", "", "worker in whose name the lease is held (required)")
	if err := cmd.MarkFlagRequired("worker"); err != nil {
		panic(err) // the flag was just made
	}
}
