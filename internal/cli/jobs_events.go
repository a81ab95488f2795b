package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) jobsEventsCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use: "events ID", Short: "Show a job's record, oldest first", Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(cmd, "events")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		ids, err := jobIDs(args)
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		return list[lessor.Event]{
			name:   "events",
			header: []string{"SEQ", "AT", "FROM", "TO", "ACTOR", "REASON", "ATTEMPT", "LEASE"},
			row: func(e lessor.Event) []string {
				from, lease := "", ""
				if e.From != nil {
					from = string(*e.From)
				}
				if e.LeaseID != nil {
					lease = e.LeaseID.String()
				}
				return []string{fmt.Sprint(e.Seq), e.At.String(), from, string(e.To), e.Actor, e.Reason, fmt.Sprint(e.Attempt), lease}
			},
			page: func(limit int, cursor string) ([]lessor.Event, string, error) {
				return c.Events(cmd.Context(), ids[0], limit, cursor)
			},
		}.show(a, f)
	})
	return cmd
}
