package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

func (a *app) schedulesTriggerCommand() *cobra.Command {
	var payload string
	cmd := &cobra.Command{
		Use:   "trigger ID…",
		Short: "Run definitions now, also those that are paused",
		Long:  "Trigger creates a job of each definition now, and prints the ids of the runs.",
		Example: `  lessor schedules trigger books.nightly
  lessor schedules trigger books.nightly --payload '{"day":"2026-02-06"}'`,
	}
	cmd.Flags().StringVar(&payload, "payload", "",
		"JSON object in place of the definition's: JSON, @FILE or - for standard input")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) (err error) {
		var given json.RawMessage
		if cmd.Flags().Changed("payload") {
			if given, err = a.readJSON("--payload", payload); err != nil {
				return err
			}
		}
		return eachOf(a, args, func(c *client.Client, id string) (map[string]any, string, error) {
			run, err := c.Trigger(cmd.Context(), id, given)
			return map[string]any{"jobId": id, "runId": run}, "run " + run.String(), err
		})
	})
	return cmd
}

func (a *app) schedulesNextCommand() *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use: "next ID", Short: "Show the next ticks of a definition",
		Example: "  lessor schedules next books.nightly -n 10",
	}
	cmd.Flags().IntVarP(&count, "count", "n", 5, "how many, 1 to 100")
	type next struct {
		Next []lessor.Instant `json:"next"`
	}
	cmd.RunE = show(a, func(_ *cobra.Command, args []string) (string, error) {
		if count < 1 || count > 100 {
			return "", usagef("--count %d: allowed is 1 to 100", count)
		}
		return args[0], nil
	}, func(c *client.Client, ctx context.Context, id string) (next, error) {
		ticks, err := c.NextTicks(ctx, id, count)
		return next{ticks}, err
	}, func(t *table.Table, n next, now time.Time) {
		t.Head("TICK", "DUE")
		for _, at := range n.Next {
			t.Row(at.String(), until(at, now))
		}
	})
	return cmd
}

func (a *app) schedulesTicksCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use: "ticks ID", Short: "Show the outcomes of a definition's ticks, oldest first",
		Example: "  lessor schedules ticks books.nightly --from -7d",
	}
	cmd.Flags().StringVar(&from, "from", "", "first time: RFC 3339, or -DURATION before now")
	cmd.Flags().StringVar(&to, "to", "", "last time: RFC 3339, or -DURATION before now")
	list[lessor.Tick]{
		name: "ticks", cursor: camelCursor,
		header: []string{"TICK", "OUTCOME", "RUN?", "REASON~"},
		row: func(t lessor.Tick, _ time.Time) []string {
			return []string{t.TickAt.String(), string(t.Outcome), idText(t.RunID), tickReason(t)}
		},
		pages: func(args []string) (pager[lessor.Tick], error) {
			first, last, err := period(from, to, time.Now())
			f := lessor.TickFilter{From: first, To: last}
			return func(
				c *client.Client, ctx context.Context, limit int, cursor string,
			) ([]lessor.Tick, string, error) {
				f.Limit, f.Cursor = limit, cursor
				return c.Ticks(ctx, args[0], f)
			}, err
		},
	}.bind(a, cmd)
	return cmd
}

// tickReason says why a tick has no job, and how many ticks the row stands for.
func tickReason(t lessor.Tick) string {
	if t.Outcome == lessor.TickMissed {
		return fmt.Sprintf("%d ticks up to %s were before the catch-up window", t.Count, t.To)
	}
	return text(t.Reason)
}

func (a *app) schedulesBackfillCommand() *cobra.Command {
	var first, last lessor.Instant
	var from, to string
	cmd := &cobra.Command{
		Use:   "backfill ID",
		Short: "Create jobs for past ticks that have none",
		Long: `Backfill creates a job for each tick between --from and --to that has none, at most 1000, and none in the
future. It can be repeated safely: a tick gets one job.`,
		Example: `  lessor schedules backfill books.nightly --from -7d
  lessor schedules backfill books.nightly --from 2026-02-01T00:00:00Z --to -1d`,
	}
	cmd.Flags().StringVar(&from, "from", "", "first time: RFC 3339, or -DURATION before now (required)")
	cmd.Flags().StringVar(&to, "to", "", "last time: RFC 3339, or -DURATION before now (default: now)")
	require(cmd, "from")
	type backfilled struct {
		Created int `json:"created"`
	}
	cmd.RunE = show(a, func(_ *cobra.Command, args []string) (_ string, err error) {
		now := time.Now()
		if first, last, err = period(from, to, now); last.IsZero() {
			last = lessor.At(now)
		}
		return args[0], err
	}, func(c *client.Client, ctx context.Context, id string) (backfilled, error) {
		created, err := c.Backfill(ctx, id, first, last)
		return backfilled{created}, err
	}, func(t *table.Table, b backfilled, _ time.Time) { t.Row(fmt.Sprintf("%d jobs made", b.Created)) })
	return cmd
}

// period reads the flags --from and --to; 0 for one that was not given.
func period(from, to string, now time.Time) (first, last lessor.Instant, err error) {
	if first, err = instantFlag("--from", from, now); err != nil {
		return first, last, err
	}
	last, err = instantFlag("--to", to, now)
	return first, last, err
}

func instantFlag(flag, value string, now time.Time) (i lessor.Instant, err error) {
	if value == "" {
		return 0, nil
	}
	if value, err = parseInstant(flag, value, "-7d", now); err != nil {
		return 0, err
	}
	if err := json.Unmarshal([]byte(`"`+value+`"`), &i); err != nil {
		return 0, usagef("%s: %w", flag, err)
	}
	return i, nil
}
