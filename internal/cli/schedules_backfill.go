package cli

import (
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) schedulesBackfillCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "backfill ID",
		Short: "Make up for past ticks that have no job",
		Long: `Backfill makes a job for each tick between --from and --to that has none: at most 1000, and none in the future. It may
be repeated: a tick gets one job.`,
		Example: "  lessor schedules backfill books.nightly --from 2026-02-01T00:00:00Z --to 2026-02-07T00:00:00Z",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&from, "from", "", "first time: RFC 3339, or -DURATION before now (required)")
	cmd.Flags().StringVar(&to, "to", "", "last time: RFC 3339, or -DURATION before now (default: now)")
	if err := cmd.MarkFlagRequired("from"); err != nil {
		panic(err) // the flag was just made
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		now := time.Now()
		first, err := instantFlag("--from", from, now)
		if err != nil {
			return err
		}
		last, err := instantFlag("--to", to, now)
		if err != nil {
			return err
		}
		if last.IsZero() {
			last = lessor.At(now)
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		created, err := c.Backfill(cmd.Context(), args[0], first, last)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.printJSON(map[string]int{"created": created})
		}
		a.say("%d jobs made", created)
		return nil
	})
	return cmd
}

// instantFlag reads a time; 0 if the flag was not given.
func instantFlag(flag, value string, now time.Time) (i lessor.Instant, err error) {
	if value == "" {
		return 0, nil
	}
	if value, err = parseInstant(flag, value, now); err != nil {
		return 0, err
	}
	if err := json.Unmarshal([]byte(`"`+value+`"`), &i); err != nil {
		return 0, usagef("%s: %w", flag, err)
	}
	return i, nil
}
