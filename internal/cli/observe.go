package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) workersCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{Use: "workers", Short: "List the workers of the last five minutes"})
	list[lessor.Worker]{
		name: "workers", whole: true,
		header: []string{"WORKER~", "SEEN", "LEASES", "UNITS", "TYPES~", "AGENT?"},
		row: func(w lessor.Worker, now time.Time) []string {
			types := strings.Join(w.Types, ",")
			if types == "" {
				types = "all"
			}
			return []string{
				w.WorkerID, ago(w.LastSeenAt, now), fmt.Sprint(w.Leases), fmt.Sprint(w.Units), types, w.Agent,
			}
		},
		pages: onePage((*client.Client).Workers),
	}.bind(a, cmd)
	return cmd
}

func (a *app) locksCommand() *cobra.Command {
	var tenant string
	cmd := a.reaching(&cobra.Command{
		Use: "locks", Short: "List held locks with their holders and expiry times", Example: "  lessor locks",
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "only locks of this tenant")
	list[lessor.Lock]{
		name: "locks", cursor: camelCursor,
		header: []string{"LOCK~", "HELD BY~", "UNTIL", "RUN", "TENANT?"},
		row: func(l lessor.Lock, now time.Time) []string {
			return []string{l.LockKey, l.LockedBy, until(l.LockedUntil, now), l.RunID.String(), tenantName(l.TenantID)}
		},
		pages: func([]string) (pager[lessor.Lock], error) {
			id, err := tenantFlag(tenant)
			return func(
				c *client.Client, ctx context.Context, limit int, cursor string,
			) ([]lessor.Lock, string, error) {
				return c.Locks(ctx, id, limit, cursor)
			}, err
		},
	}.bind(a, cmd)
	return cmd
}

func (a *app) circuitsCommand() *cobra.Command {
	cmd := withList(a.reaching(&cobra.Command{
		Use:   "circuits",
		Short: "List the circuits of definitions that failed recently; reset one",
		Example: `  lessor circuits
  lessor circuits reset books.nightly`,
	}), "List circuits, the last opened first (the default)", "  lessor circuits list", list[lessor.Circuit]{
		name: "circuits", cursor: camelCursor,
		header: []string{"DEFINITION~", "STATE", "FAILURES", "OPENED", "TRIAL"},
		row: func(k lessor.Circuit, now time.Time) []string {
			return []string{
				k.JobID, string(k.State), fmt.Sprint(k.Failures), age(k.OpenedAt, now), until(k.RetryAt, now),
			}
		},
		pages: unfiltered((*client.Client).Circuits),
	}.binder(a))
	cmd.AddCommand(&cobra.Command{
		Use: "reset ID…", Short: "Close circuits by hand", Example: "  lessor circuits reset books.nightly",
		RunE: a.eachDefinition("closed", (*client.Client).ResetCircuit),
	})
	return cmd
}

func (a *app) alertsCommand() *cobra.Command {
	cmd := withList(a.reaching(&cobra.Command{
		Use:   "alerts",
		Short: "List alerts",
		Example: `  lessor alerts --open
  lessor alerts list --all`,
	}), "List alerts, newest first (the default)", "  lessor alerts list --open", a.bindAlerts)
	cmd.AddCommand(&cobra.Command{
		Use: "ack ID…", Short: "Acknowledge alerts",
		Example: "  lessor alerts ack 0199c0de-7c7c-7000-8000-000000000001",
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			return each(a, args, "alerts", "alert", func(c *client.Client, arg string) (lessor.Alert, string, error) {
				u, err := lessor.ParseUUID(arg)
				if err != nil {
					return lessor.Alert{}, "", lessor.ErrAlertNotFound
				}
				k, err := c.Acknowledge(cmd.Context(), lessor.AlertID{UUID: u})
				return k, "acknowledged by " + text(k.AcknowledgedBy), err
			})
		}),
	})
	return cmd
}

func (a *app) bindAlerts(cmd *cobra.Command) {
	var open bool
	cmd.Flags().BoolVar(&open, "open", false, "leave out cleared alerts")
	list[lessor.Alert]{
		name: "alerts", cursor: camelCursor,
		header: []string{"ID", "RAISED", "KIND", "MESSAGE+", "CLEARED?", "SEEN BY?", "SUBJECT~?", "TENANT?"},
		row: func(k lessor.Alert, now time.Time) []string {
			return []string{
				k.ID.String(), ago(k.RaisedAt, now), string(k.Kind), k.Message, age(k.ClearedAt, now),
				text(k.AcknowledgedBy), k.Subject, tenantName(k.TenantID),
			}
		},
		pages: unfiltered(func(
			c *client.Client, ctx context.Context, limit int, cursor string,
		) ([]lessor.Alert, string, error) {
			return c.Alerts(ctx, lessor.AlertFilter{Open: open, Limit: limit, Cursor: cursor})
		}),
	}.bind(a, cmd)
}

func (a *app) auditCommand() *cobra.Command {
	var filter lessor.AuditFilter
	cmd := a.reaching(&cobra.Command{
		Use:   "audit",
		Short: "List who changed what",
		Long: `Audit lists who changed which definition, tenant, token or capacity, newest first; with --json also the
values before and after. It needs an admin token.`,
		Example: `  lessor audit
  lessor audit --object definition/books.nightly --json`,
	})
	cmd.Flags().StringVar(&filter.Actor, "actor", "", "only what this actor changed")
	cmd.Flags().StringVar(&filter.Object, "object", "", "only changes of this object, like definition/ID")
	list[lessor.Audited]{
		name: "audit", noun: "entries", cursor: camelCursor,
		header: []string{"AGE", "ACTOR~", "ACTION", "OBJECT+", "AT?", "TRACE?"},
		row: func(e lessor.Audited, now time.Time) []string {
			return []string{age(e.At, now), e.Actor, e.Action, e.Object, e.At.String(), e.TraceID}
		},
		pages: unfiltered(func(
			c *client.Client, ctx context.Context, limit int, cursor string,
		) ([]lessor.Audited, string, error) {
			filter.Limit, filter.Cursor = limit, cursor
			return c.Audit(ctx, filter)
		}),
	}.bind(a, cmd)
	return cmd
}
