package cli

import "github.com/spf13/cobra"

func (a *app) leasesRevokeCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Take a lease away from its worker",
		Long:  "Revoke ends a lease: the attempt fails and is tried again as usual. It needs a token.",
		Args:  cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the job's record")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		id, err := leaseID(args[0])
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		if err := c.Revoke(cmd.Context(), id, reason); err != nil {
			return err
		}
		return a.done("revoked")
	})
	return cmd
}
