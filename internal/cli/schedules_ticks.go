package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) schedulesTicksCommand() *cobra.Command {
	var from, to string
	var f listFlags
	cmd := &cobra.Command{
		Use: "ticks ID", Short: "Show what became of a definition's ticks, oldest first",
		Example: "  lessor schedules ticks books.nightly --from -7d", Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&from, "from", "", "first time: RFC 3339, or -DURATION before now")
	cmd.Flags().StringVar(&to, "to", "", "last time: RFC 3339, or -DURATION before now")
	f.add(cmd, "ticks")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) (err error) {
		var filter lessor.TickFilter
		if filter.From, err = instantFlag("--from", from, time.Now()); err != nil {
			return err
		}
		if filter.To, err = instantFlag("--to", to, time.Now()); err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		return list[lessor.Tick]{
			name: "ticks", cursor: kernelCursor,
			header: []string{"TICK", "OUTCOME", "REASON", "RUN"},
			row: func(t lessor.Tick) []string {
				return []string{t.TickAt.String(), string(t.Outcome), tickReason(t), tickRun(t)}
			},
			page: func(limit int, cursor string) ([]lessor.Tick, string, error) {
				filter.Limit, filter.Cursor = limit, cursor
				return c.Ticks(cmd.Context(), args[0], filter)
			},
		}.show(a, f)
	})
	return cmd
}

// tickReason tells why a tick has no job, and for how many ticks it stands.
func tickReason(t lessor.Tick) string {
	if t.Outcome == lessor.TickMissed {
		return fmt.Sprintf("%d ticks up to %s lay before the catch-up window", t.Count, t.To)
	}
	return text(t.Reason)
}

func tickRun(t lessor.Tick) string {
	if t.RunID == nil {
		return ""
	}
	return t.RunID.String()
}
