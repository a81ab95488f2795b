package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/pause"
)

// followEvery is how often a journal that is followed is read.
const followEvery = time.Second

func (a *app) jobsJournalCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "journal ID", Short: "Show a job's journal, oldest first"}
	journal := list[lessor.JournalEntry]{
		name: "journal", noun: "entries",
		header: []string{"N", "AT", "KIND", "KEY~", "DATA~"},
		row: func(e lessor.JournalEntry, _ time.Time) []string {
			return []string{fmt.Sprint(e.N), e.At.String(), e.Kind, e.Key, string(e.Data)}
		},
		pages: func(args []string) (pager[lessor.JournalEntry], error) {
			id, err := parseID[lessor.JobID]("job", args[0])
			return func(
				c *client.Client, ctx context.Context, limit int, after string,
			) ([]lessor.JournalEntry, string, error) {
				return c.Journal(ctx, id, limit, after)
			}, err
		},
	}
	journal.bind(a, cmd)
	show := cmd.RunE
	follow := false
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with entries as they are appended, until the job ends")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !follow {
			return show(cmd, args)
		}
		return a.run(func(cmd *cobra.Command, args []string) error {
			return a.followJournal(cmd.Context(), journal, args[0])
		})(cmd, args)
	}
	return cmd
}

// followJournal prints entries until the job has ended and all are printed.
func (a *app) followJournal(ctx context.Context, l list[lessor.JournalEntry], arg string) error {
	id, err := parseID[lessor.JobID]("job", arg)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	put := l.tablePrinter(a)
	if a.json {
		put = l.jsonPrinter(a)
	}
	for after := ""; ; {
		job, err := c.Job(ctx, id) // before the entries, so that none is missed
		if err != nil {
			return err
		}
		entries, next, err := c.Journal(ctx, id, maxPage, after)
		if err != nil {
			return err
		}
		if n := len(entries); n > 0 {
			after = strconv.Itoa(entries[n-1].N)
		}
		last := next == "" && job.Final()
		if err := put(entries, "", last); err != nil || last {
			return err
		}
		if next != "" {
			continue
		}
		if !pause.For(ctx, followEvery) {
			return context.Cause(ctx)
		}
	}
}
