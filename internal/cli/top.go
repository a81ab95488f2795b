package cli

import (
	"cmp"
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/pause"
	"lessor/internal/top"
)

const (
	topRows  = 200         // rows of a list that top reads: more than fit on any screen
	topEvery = time.Second // how often the live view is refreshed
)

func (a *app) topCommand() *cobra.Command {
	every := duration{}
	cmd := a.reaching(&cobra.Command{
		Use:   "top",
		Short: "Watch leases, queue, workers and alerts",
		Long: `Top shows leases with their time left, the queue, workers, capacity and alerts, live.

Keys: 1 to 4 and tab select the view, arrows move, / filters, enter inspects a job, c cancels one after a confirmation,
q quits.

If the output is not a terminal, or with --json, top prints one snapshot and exits; with --interval it prints one line,
or one JSON document, at each interval until it is stopped.`,
		Example: "  lessor top\n  lessor top --json\n  lessor top --interval 5s | tee top.log",
	})
	cmd.Flags().Var(&every, "interval", "refresh interval (live: 1s; otherwise once)")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("interval") && every.Duration < 100*time.Millisecond {
			return usagef("--interval: %s is less than 100ms", every.String())
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		read := func(ctx context.Context) (top.Snapshot, error) {
			return top.Read(ctx, c, topRows, lessor.At(time.Now()))
		}
		if !a.json && isTerminal(a.Out) && isTerminal(a.In) {
			return a.watchTop(cmd.Context(), c, read, every.Duration)
		}
		return a.printTop(cmd.Context(), read, every.Duration)
	})
	return cmd
}

// topReader reads a snapshot.
type topReader = func(context.Context) (top.Snapshot, error)

// watchTop runs the live view.
func (a *app) watchTop(ctx context.Context, c *client.Client, read topReader, every time.Duration) error {
	view := top.New(ctx, top.Config{
		Every: cmp.Or(every, topEvery), Read: read, Job: c.Job,
		Cancel: func(ctx context.Context, id lessor.JobID) (lessor.Job, error) { return c.Cancel(ctx, id, false) },
	})
	_, err := tea.NewProgram(view, tea.WithContext(ctx), tea.WithInput(a.In), tea.WithOutput(a.Out),
		tea.WithEnvironment(a.Environ), tea.WithoutSignalHandler()).Run()
	return unlessStopped(ctx, err)
}

// unlessStopped returns nil if a signal stopped the command: it has no other end.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// printTop prints one snapshot, or one line per interval until a signal stops it.
func (a *app) printTop(ctx context.Context, read topReader, every time.Duration) error {
	for {
		s, err := read(ctx)
		switch {
		case err != nil && every > 0:
			return unlessStopped(ctx, err)
		case err != nil:
			return err
		case a.json:
			err = a.printJSON(s)
		case every > 0:
			a.say("%s", s.Line())
		default:
			err = a.printSnapshot(&s)
		}
		if err != nil || every == 0 {
			return err
		}
		if !pause.For(ctx, every) {
			return nil
		}
	}
}

// printSnapshot prints all rows of a snapshot.
func (a *app) printSnapshot(s *top.Snapshot) error {
	now := s.At.Time()
	a.say("%s", s.Line())
	t := a.table()
	for _, l := range s.Leases {
		t.Row("lease", l.JobID.String(), l.WorkerID, "ends "+until(l.ExpiresAt, now))
	}
	for i := range s.Queue {
		j := &s.Queue[i]
		t.Row("queued", j.ID.String(), j.Type, j.Priority.String()+", since "+age(j.UpdatedAt, now))
	}
	for i := range s.Workers {
		t.Row("worker", s.Workers[i].WorkerID, s.Workers[i].Agent, "seen "+ago(s.Workers[i].LastSeenAt, now))
	}
	for i := range s.Alerts {
		t.Row("alert", s.Alerts[i].Subject, string(s.Alerts[i].Kind), s.Alerts[i].Message)
	}
	return t.Flush()
}
