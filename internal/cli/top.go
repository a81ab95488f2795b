package cli

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/top"
)

// topRows bounds the rows of a list that top reads: more than fit on any screen.
const topRows = 200

// topEvery is how often the live view is refreshed.
const topEvery = time.Second

func (a *app) topCommand() *cobra.Command {
	every := duration{}
	cmd := a.reaching(&cobra.Command{
		Use:   "top",
		Short: "Watch leases, queue, workers and alerts",
		Long: `Top shows what goes on, live: leases with what is left of them, the queue, workers, capacity and alerts.

Keys: 1 to 4 and tab choose what is shown, arrows move, / filters, enter inspects a job, c cancels one (after a question), q ends.

Where the output is no terminal, and with --json, it prints one snapshot and ends; with --interval one line, or one JSON document, each
time until it is stopped.`,
		Example: "  lessor top\n  lessor top --json\n  lessor top --interval 5s | tee top.log",
	})
	cmd.Flags().Var(&every, "interval", "refresh this often (live: 1s; else once)")
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

// watchTop is the live view.
func (a *app) watchTop(ctx context.Context, c *client.Client, read func(context.Context) (top.Snapshot, error), every time.Duration) error {
	if every == 0 {
		every = topEvery
	}
	view := top.New(ctx, top.Config{
		Every: every, Read: read, Job: c.Job,
		Cancel: func(ctx context.Context, id lessor.JobID) (lessor.Job, error) { return c.Cancel(ctx, id, false) },
	})
	_, err := tea.NewProgram(view, tea.WithContext(ctx), tea.WithInput(a.In), tea.WithOutput(a.Out), tea.WithEnvironment(a.Environ), tea.WithoutSignalHandler()).Run()
	return unlessStopped(ctx, err)
}

// unlessStopped is nil if the command was told to stop: that is how one ends what goes on for ever.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// printTop prints one snapshot, or a line each time until it is told to stop.
func (a *app) printTop(ctx context.Context, read func(context.Context) (top.Snapshot, error), every time.Duration) error {
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
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// printSnapshot prints all of it for a person or a mail.
func (a *app) printSnapshot(s *top.Snapshot) error {
	now := s.At.Time()
	a.say("%s", s.Line())
	t := newTable(a.Out)
	for _, l := range s.Leases {
		t.row("lease", l.JobID.String(), l.WorkerID, "ends "+until(l.ExpiresAt, now))
	}
	for i := range s.Queue {
		j := &s.Queue[i]
		t.row("queued", j.ID.String(), j.Type, j.Priority.String()+", since "+age(j.UpdatedAt, now))
	}
	for i := range s.Workers {
		t.row("worker", s.Workers[i].WorkerID, s.Workers[i].Agent, "seen "+ago(s.Workers[i].LastSeenAt, now))
	}
	for i := range s.Alerts {
		t.row("alert", s.Alerts[i].Subject, string(s.Alerts[i].Kind), s.Alerts[i].Message)
	}
	return t.flush()
}
