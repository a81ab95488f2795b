package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/config"
	"lessor/internal/table"
)

func (a *app) schedulesCommand() *cobra.Command {
	cmd := withList(a.reaching(&cobra.Command{
		Use:   "schedules",
		Short: "List definitions; apply manifests, pause or trigger one",
		Example: `  lessor schedules apply -f jobs.yaml --dry-run
  lessor schedules
  lessor schedules next books.nightly -n 3`,
	}), "List definitions, newest first (the default)", "  lessor schedules list --module books", a.bindDefinitions)
	cmd.AddCommand(
		&cobra.Command{
			Use: "show ID", Short: "Show everything about a definition",
			Example: "  lessor schedules show books.nightly",
			RunE:    show(a, nameArg, (*client.Client).Definition, writeDefinition),
		},
		&cobra.Command{
			Use: "pause ID…", Short: "Pause definitions: ticks stop, and queued jobs wait",
			Example: "  lessor schedules pause books.nightly",
			RunE:    a.eachDefinition("paused", (*client.Client).Pause),
		},
		&cobra.Command{
			Use: "resume ID…", Short: "Resume definitions; ticks during the pause are not caught up",
			Example: "  lessor schedules resume books.nightly",
			RunE:    a.eachDefinition("resumed", (*client.Client).Resume),
		},
		a.schedulesDeleteCommand(), a.schedulesApplyCommand(), a.schedulesTriggerCommand(),
		a.schedulesBackfillCommand(), a.schedulesNextCommand(), a.schedulesTicksCommand(),
	)
	return cmd
}

func (a *app) bindDefinitions(cmd *cobra.Command) {
	var tenant, module string
	cmd.Flags().StringVar(&tenant, "tenant", "", "only definitions of this tenant")
	cmd.Flags().StringVar(&module, "module", "", "only definitions of this module's manifests")
	list[lessor.Definition]{
		name: "jobs", noun: "definitions", cursor: camelCursor,
		header: []string{"DEFINITION~", "SCHEDULE~", "HANDLER~", "NEXT", "NOTE", "MODULE?", "TENANT?"},
		row: func(d lessor.Definition, now time.Time) []string {
			return []string{
				d.JobID, scheduleText(d), d.HandlerID, until(d.NextTickAt, now), whyNoTicks(d), text(d.ModuleID),
				tenantName(d.TenantID),
			}
		},
		pages: func([]string) (pager[lessor.Definition], error) {
			id, err := tenantFlag(tenant)
			f := lessor.DefinitionFilter{Tenant: id, Module: module}
			return func(
				c *client.Client, ctx context.Context, limit int, cursor string,
			) ([]lessor.Definition, string, error) {
				f.Limit, f.Cursor = limit, cursor
				return c.Definitions(ctx, f)
			}, err
		},
	}.bind(a, cmd)
}

// scheduleText returns a definition's schedule.
func scheduleText(d lessor.Definition) string {
	switch {
	case d.Schedule.Type == lessor.ScheduleInterval:
		return "every " + secondsText(d.Schedule.Seconds)
	case d.Timezone != "UTC":
		return d.Schedule.Cron + " " + d.Timezone
	}
	return d.Schedule.Cron
}

// whyNoTicks says why a definition has no ticks.
func whyNoTicks(d lessor.Definition) string {
	switch {
	case d.Paused:
		return "paused"
	case !d.IsEnabled:
		return "disabled"
	}
	return ""
}

// eachDefinition returns a command that calls do for every definition named; done is printed as the outcome.
func (a *app) eachDefinition(done string, do call[string, lessor.Definition]) runFunc {
	return a.run(func(cmd *cobra.Command, args []string) error {
		return eachOf(a, args, func(c *client.Client, id string) (lessor.Definition, string, error) {
			d, err := do(c, cmd.Context(), id)
			return d, done, err
		})
	})
}

// eachOf is each for definitions.
func eachOf[A any](a *app, ids []string, ask func(*client.Client, string) (A, string, error)) error {
	return each(a, ids, "jobs", "definition", ask)
}

func (a *app) schedulesDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID…",
		Short: "Delete definitions; their runs stay",
		Long: `Delete removes definitions and cancels their waiting jobs. Running jobs continue, and all runs stay in
the audit.`,
		Example: "  lessor schedules delete books.nightly",
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			return eachOf(a, args, func(c *client.Client, id string) (map[string]string, string, error) {
				return map[string]string{"jobId": id}, "deleted", c.DeleteDefinition(cmd.Context(), id)
			})
		}),
	}
}

func writeDefinition(t *table.Table, d lessor.Definition, now time.Time) {
	t.Row("definition", d.JobID)
	t.Row("tenant", tenantName(d.TenantID))
	t.Row("module", text(d.ModuleID))
	t.Row("version", text(d.Version))
	t.Row("schedule", scheduleText(d))
	if d.NextTickAt.IsZero() {
		t.Row("next tick", "none: "+whyNoTicks(d))
	} else {
		t.Row("next tick", fmt.Sprintf("%s (%s)", d.NextTickAt, until(d.NextTickAt, now)))
	}
	t.Row("handler", d.HandlerID)
	t.Row("payload", string(d.Payload))
	t.Row("lock", d.LockKey)
	t.Row("priority", d.Priority.String())
	t.Row("units", fmt.Sprint(d.RequestedUnits))
	t.Row("class", d.FairnessClass)
	t.Row("timeout", secondsText(d.MaxRuntimeSeconds))
	t.Row("attempts", fmt.Sprint(d.MaxAttempts))
	t.Row("backoff", millisText(d.Backoff.FirstMS)+" to "+millisText(d.Backoff.MaxMS))
	t.Row("overlap", string(d.Overlap))
	t.Row("catch up", fmt.Sprintf("%s within %s", d.CatchUp, secondsText(d.CatchUpWindowSeconds)))
	if d.JitterSeconds > 0 {
		t.Row("jitter", "up to "+secondsText(d.JitterSeconds))
	}
	cooldown := secondsText(d.Circuit.CooldownSeconds)
	t.Row("circuit", fmt.Sprintf("opens after %d failures for %s", d.Circuit.Failures, cooldown))
	t.Row("created", fmt.Sprintf("%s (%s)", d.CreatedAt, ago(d.CreatedAt, now)))
	t.Row("updated", fmt.Sprintf("%s (%s)", d.UpdatedAt, ago(d.UpdatedAt, now)))
}

func millisText(n int64) string  { return config.FormatDuration(time.Duration(n) * time.Millisecond) }
func secondsText(n int64) string { return config.FormatDuration(time.Duration(n) * time.Second) }
