package cli

import (
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) alertsCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "alerts",
		Short: "List alerts",
		Example: `  lessor alerts --open
  lessor alerts list --all`,
		Args: cobra.NoArgs,
	})
	a.listsAlerts(cmd)
	list := &cobra.Command{Use: "list", Short: "List alerts, newest first (the default)", Example: "  lessor alerts list --open", Args: cobra.NoArgs}
	a.listsAlerts(list)
	cmd.AddCommand(list)
	return cmd
}

// listsAlerts makes cmd the list of alerts: `alerts` and `alerts list` are the same.
func (a *app) listsAlerts(cmd *cobra.Command) {
	var open bool
	var f listFlags
	cmd.Flags().BoolVar(&open, "open", false, "leave out alerts that are cleared")
	f.add(cmd, "alerts")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		now := time.Now()
		return list[lessor.Alert]{
			name: "alerts", cursor: kernelCursor,
			header: []string{"RAISED", "CLEARED", "KIND", "SUBJECT", "TENANT", "MESSAGE"},
			row: func(k lessor.Alert) []string {
				return []string{ago(k.RaisedAt, now), age(k.ClearedAt, now), string(k.Kind), k.Subject, tenantName(k.TenantID), k.Message}
			},
			page: func(limit int, cursor string) ([]lessor.Alert, string, error) {
				return c.Alerts(cmd.Context(), lessor.AlertFilter{Open: open, Limit: limit, Cursor: cursor})
			},
		}.show(a, f)
	})
}
