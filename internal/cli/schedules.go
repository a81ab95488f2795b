package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

type schedulesFlags struct {
	tenant, module string
	list           listFlags
}

func (a *app) schedulesCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "schedules",
		Short: "List definitions; apply manifests, show, pause, trigger or backfill one",
		Example: `  lessor schedules apply -f jobs.yaml --dry-run
  lessor schedules
  lessor schedules next books.nightly -n 3`,
		Args: cobra.NoArgs,
	})
	a.listsSchedules(cmd)
	list := &cobra.Command{Use: "list", Short: "List definitions, newest first (the default)", Example: "  lessor schedules list --module books", Args: cobra.NoArgs}
	a.listsSchedules(list)
	cmd.AddCommand(
		list, a.schedulesShowCommand(), a.schedulesApplyCommand(), a.schedulesDeleteCommand(),
		a.steerCommand("schedules pause", "paused", "Pause definitions: no ticks, and their queued jobs wait", (*client.Client).Pause),
		a.steerCommand("schedules resume", "resumed", "Resume definitions; ticks of the pause are not caught up", (*client.Client).Resume),
		a.schedulesTriggerCommand(), a.schedulesBackfillCommand(), a.schedulesNextCommand(), a.schedulesTicksCommand(),
	)
	return cmd
}

// listsSchedules makes cmd the list of definitions: `schedules` and `schedules list` are the same.
func (a *app) listsSchedules(cmd *cobra.Command) {
	var f schedulesFlags
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "only definitions of this tenant")
	cmd.Flags().StringVar(&f.module, "module", "", "only definitions of this module's manifests")
	f.list.add(cmd, "definitions")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error { return a.schedules(cmd, f) })
}

func (a *app) schedules(cmd *cobra.Command, f schedulesFlags) error {
	filter := lessor.DefinitionFilter{Module: f.module}
	var err error
	if filter.Tenant, err = tenantFlag(f.tenant); err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	now := time.Now()
	return list[lessor.Definition]{
		name: "jobs", noun: "definitions", cursor: kernelCursor,
		header: []string{"DEFINITION", "TENANT", "SCHEDULE", "HANDLER", "NEXT", "MODULE", "NOTE"},
		row: func(d lessor.Definition) []string {
			return []string{d.JobID, tenantName(d.TenantID), scheduleText(d), d.HandlerID, until(d.NextTickAt, now), text(d.ModuleID), standing(d)}
		},
		page: func(limit int, cursor string) ([]lessor.Definition, string, error) {
			filter.Limit, filter.Cursor = limit, cursor
			return c.Definitions(cmd.Context(), filter)
		},
	}.show(a, f.list)
}

// scheduleText tells when a definition's ticks are.
func scheduleText(d lessor.Definition) string {
	switch {
	case d.Schedule.Type == lessor.ScheduleInterval:
		return "every " + (&duration{time.Duration(d.Schedule.Seconds) * time.Second}).String()
	case d.Timezone != "UTC":
		return d.Schedule.Cron + " " + d.Timezone
	}
	return d.Schedule.Cron
}

// standing says why a definition has no ticks.
func standing(d lessor.Definition) string {
	switch {
	case d.Paused:
		return "paused"
	case !d.IsEnabled:
		return "disabled"
	}
	return ""
}

// steerCommand is a command that does one thing to each definition named, and says so with a word. Its path is without the program.
func (a *app) steerCommand(path, done, short string, do func(*client.Client, context.Context, string) (lessor.Definition, error)) *cobra.Command {
	_, verb, _ := strings.Cut(path, " ")
	return &cobra.Command{
		Use: verb + " ID…", Short: short, Example: "  lessor " + path + " books.nightly", Args: cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			return a.eachDefinition(args, func(c *client.Client, id string) (any, string, error) {
				d, err := do(c, cmd.Context(), id)
				return d, done, err
			})
		}),
	}
}

// eachDefinition does something to each definition named, goes on after a refusal, and prints what became of each as it goes.
func (a *app) eachDefinition(ids []string, do func(c *client.Client, id string) (answer any, became string, err error)) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	var errs []error
	done := struct {
		Jobs []any `json:"jobs"`
	}{Jobs: []any{}}
	for _, id := range ids {
		answer, became, err := do(c, id)
		if err != nil {
			errs = append(errs, subjectError{"definition " + id, err})
			if exitCode(err) == exitFault {
				break // the next would fail alike
			}
			continue
		}
		done.Jobs = append(done.Jobs, answer)
		if !a.json {
			a.say("%s", clean(fmt.Sprint(id, " ", became)))
		}
	}
	if a.json {
		errs = append(errs, a.printJSON(done))
	}
	return errors.Join(errs...)
}
