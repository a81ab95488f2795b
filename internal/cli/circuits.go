package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) circuitsCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "circuits",
		Short: "List the circuits of definitions that failed lately; reset one",
		Example: `  lessor circuits
  lessor circuits reset books.nightly`,
		Args: cobra.NoArgs,
	})
	a.listsCircuits(cmd)
	list := &cobra.Command{Use: "list", Short: "List circuits by definition (the default)", Example: "  lessor circuits list", Args: cobra.NoArgs}
	a.listsCircuits(list)
	cmd.AddCommand(list, a.steerCommand("circuits reset", "closed", "Close circuits by hand", (*client.Client).ResetCircuit))
	return cmd
}

// listsCircuits makes cmd the list of circuits: `circuits` and `circuits list` are the same.
func (a *app) listsCircuits(cmd *cobra.Command) {
	var f listFlags
	f.add(cmd, "circuits")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		now := time.Now()
		return list[lessor.Circuit]{
			name: "circuits", cursor: kernelCursor,
			header: []string{"DEFINITION", "STATE", "FAILURES", "OPENED", "TRIAL"},
			row: func(k lessor.Circuit) []string {
				return []string{k.JobID, string(k.State), fmt.Sprint(k.Failures), age(k.OpenedAt, now), until(k.RetryAt, now)}
			},
			page: func(limit int, cursor string) ([]lessor.Circuit, string, error) {
				return c.Circuits(cmd.Context(), limit, cursor)
			},
		}.show(a, f)
	})
}
