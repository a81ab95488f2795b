package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) workersCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "workers",
		Short: "List the workers of the last five minutes",
		Args:  cobra.NoArgs,
	})
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		now := time.Now()
		return list[lessor.Worker]{
			name:   "workers",
			header: []string{"WORKER", "SEEN", "LEASES", "UNITS", "TYPES", "AGENT"},
			row: func(w lessor.Worker) []string {
				types := strings.Join(w.Types, ",")
				if types == "" {
					types = "all"
				}
				return []string{w.WorkerID, ago(w.LastSeenAt, now), fmt.Sprint(w.Leases), fmt.Sprint(w.Units), types, w.Agent}
			},
			page: func(int, string) ([]lessor.Worker, string, error) {
				workers, err := c.Workers(cmd.Context())
				return workers, "", err
			},
		}.show(a, listFlags{all: true, limit: maxPage})
	})
	return cmd
}
