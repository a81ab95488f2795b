package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
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
	cmd.AddCommand(list, a.alertsAckCommand())
	return cmd
}

func (a *app) alertsAckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ack ID…", Short: "Note that somebody knows of alerts", Example: "  lessor alerts ack 0199c0de-7c7c-7000-8000-000000000001",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			var errs []error
			done := struct {
				Alerts []lessor.Alert `json:"alerts"`
			}{Alerts: []lessor.Alert{}}
			for _, arg := range args {
				k, err := acknowledge(cmd.Context(), c, arg)
				if err != nil {
					errs = append(errs, subjectError{"alert " + arg, err})
					continue
				}
				done.Alerts = append(done.Alerts, k)
				if !a.json {
					a.say("%s", clean(fmt.Sprintf("%s acknowledged by %s", k.ID, *k.AcknowledgedBy)))
				}
			}
			if a.json {
				errs = append(errs, a.printJSON(done))
			}
			return errors.Join(errs...)
		}),
	}
}

func acknowledge(ctx context.Context, c *client.Client, arg string) (lessor.Alert, error) {
	u, err := lessor.ParseUUID(arg)
	if err != nil {
		return lessor.Alert{}, lessor.ErrAlertNotFound
	}
	return c.Acknowledge(ctx, lessor.AlertID{UUID: u})
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
			header: []string{"ID", "RAISED", "CLEARED", "SEEN BY", "KIND", "SUBJECT", "TENANT", "MESSAGE"},
			row: func(k lessor.Alert) []string {
				by := "-"
				if k.AcknowledgedBy != nil {
					by = *k.AcknowledgedBy
				}
				return []string{k.ID.String(), ago(k.RaisedAt, now), age(k.ClearedAt, now), by, string(k.Kind), k.Subject, tenantName(k.TenantID), k.Message}
			},
			page: func(limit int, cursor string) ([]lessor.Alert, string, error) {
				return c.Alerts(cmd.Context(), lessor.AlertFilter{Open: open, Limit: limit, Cursor: cursor})
			},
		}.show(a, f)
	})
}
