package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

func (a *app) jobsCommand() *cobra.Command {
	cmd := withList(a.reaching(&cobra.Command{
		Use:   "jobs",
		Short: "List jobs; show, explain or answer one, cancel or retry some",
		Example: `  lessor jobs
  lessor jobs list --state failed --type mail --all
  lessor jobs why 0196a1b2-…`,
	}), "List jobs, newest first (the default)", "", a.bindJobs)
	events := &cobra.Command{Use: "events ID", Short: "Show a job's record, oldest first"}
	a.bindEvents(events)
	job := idArg[lessor.JobID]("job")
	cmd.AddCommand(events, a.jobsCancelCommand(), a.jobsRetryCommand(), a.jobsAnswerCommand(), a.jobsMessageCommand(),
		a.jobsJournalCommand(), a.jobsLogsCommand(),
		&cobra.Command{
			Use: "show ID", Short: "Show everything about a job",
			RunE: show(a, job, func(c *client.Client, ctx context.Context, id lessor.JobID) (jobAndNext, error) {
				return readJob(ctx, c, id)
			}, writeJobAndNext),
		},
		&cobra.Command{
			Use: "why ID", Short: "Explain why a job does not run now",
			RunE: show(a, job, (*client.Client).Why, writeWhy),
		})
	return cmd
}

func (a *app) bindJobs(cmd *cobra.Command) {
	var f jobFilterFlags
	f.add(cmd)
	list[lessor.Job]{
		name:   "jobs",
		header: []string{"JOB", "TYPE~", "STATE", "AGE?", "ATTEMPT?", "PRIORITY?", "UNITS?", "TENANT?", "NOTE~"},
		row: func(j lessor.Job, now time.Time) []string {
			return []string{
				j.ID.String(), j.Type, string(j.State), age(j.CreatedAt, now),
				fmt.Sprintf("%d/%d", j.Attempt, j.MaxAttempts), j.Priority.String(), fmt.Sprint(j.RequestedUnits),
				tenantName(j.TenantID), jobNote(j, now),
			}
		},
		pages: func([]string) (pager[lessor.Job], error) {
			filter, err := f.filter()
			return func(c *client.Client, ctx context.Context, limit int, cursor string) ([]lessor.Job, string, error) {
				filter.Limit, filter.Cursor = limit, cursor
				return c.Jobs(ctx, filter)
			}, err
		},
	}.bind(a, cmd)
}

// jobNote returns the last column: a pending cancellation, the next attempt, the progress, or the last error.
func jobNote(j lessor.Job, now time.Time) string {
	switch {
	case j.CancelRequested && j.State != lessor.Cancelled:
		return "cancel requested"
	case !j.RetryAt.IsZero():
		return strings.TrimSuffix("retry "+until(j.RetryAt, now)+": "+firstLine(j.Error), ": ")
	case j.State == lessor.Queued && j.RunAt.Time().After(now):
		return "due " + until(j.RunAt, now)
	case j.State == lessor.Waiting:
		return "asks: " + firstLine(&j.Question.Text)
	case j.State == lessor.Running && j.Progress != nil:
		return strings.TrimSpace(fmt.Sprintf("%.0f %% %s", *j.Progress*100, text(j.Message)))
	}
	return firstLine(j.Error)
}

// firstLine returns the first line of an error that has one, "" for nil.
func firstLine(p *string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text(p)), "\n")
	return strings.TrimSpace(line)
}

func (a *app) bindEvents(cmd *cobra.Command) {
	list[lessor.Event]{
		name:   "events",
		header: []string{"SEQ", "AT", "FROM", "TO", "ACTOR~", "REASON~", "ATTEMPT?", "LEASE?"},
		row: func(e lessor.Event, _ time.Time) []string {
			return []string{
				fmt.Sprint(e.Seq), e.At.String(), text((*string)(e.From)), string(e.To), e.Actor, e.Reason,
				fmt.Sprint(e.Attempt), idText(e.LeaseID),
			}
		},
		pages: func(args []string) (pager[lessor.Event], error) {
			id, err := parseID[lessor.JobID]("job", args[0])
			return func(
				c *client.Client, ctx context.Context, limit int, cursor string,
			) ([]lessor.Event, string, error) {
				return c.Events(ctx, id, limit, cursor)
			}, err
		},
	}.bind(a, cmd)
}

// jobAndNext is a job and the entry of its record that names the job which continues it, if there is one.
type jobAndNext struct {
	lessor.Job
	resumed *lessor.Event
}

// resumedAs begins the reason of such an entry.
const resumedAs = "resumed_as "

func readJob(ctx context.Context, c *client.Client, id lessor.JobID) (j jobAndNext, err error) {
	if j.Job, err = c.Job(ctx, id); err != nil || !j.Final() || j.State == lessor.Completed {
		return j, err
	}
	events, _, err := c.Events(ctx, id, maxPage, "")
	for i := range events {
		if strings.HasPrefix(events[i].Reason, resumedAs) {
			j.resumed = &events[i]
		}
	}
	if lessor.CodeOf(err) != "" { // some roles may read a job and not its record
		return j, nil
	}
	return j, err
}

func writeJobAndNext(t *table.Table, j jobAndNext, now time.Time) {
	writeJob(t, j.Job, now)
	if e := j.resumed; e != nil {
		t.Row("resumed as", strings.TrimPrefix(e.Reason, resumedAs))
		t.Row("resumed by", fmt.Sprintf("%s, %s, because it was %s: %s", e.Actor, ago(e.At, now), j.State,
			firstLine(j.Error)))
	}
}

// writeJob prints a job's fields, and leaves out those that are not set.
func writeJob(t *table.Table, j lessor.Job, now time.Time) {
	line := func(name, value string) {
		if value != "" && value != "-" && value != "null" {
			t.Row(name, value)
		}
	}
	at := func(name string, i lessor.Instant) {
		if !i.IsZero() {
			t.Row(name, fmt.Sprintf("%s (%s)", i, ago(i, now)))
		}
	}
	line("job", j.ID.String())
	line("type", j.Type)
	line("state", string(j.State))
	line("priority", j.Priority.String())
	line("units", fmt.Sprint(j.RequestedUnits))
	line("attempt", fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts))
	line("tenant", tenantName(j.TenantID))
	line("class", j.FairnessClass)
	line("tags", strings.Join(j.Tags, ", "))
	line("key", text(j.IdempotencyKey))
	line("lock", text(j.LockKey))
	if j.Unique {
		line("unique", "yes")
	}
	if j.MaxRuntimeS != nil {
		line("max runtime", table.Span(time.Duration(*j.MaxRuntimeS)*time.Second))
	}
	line("lease", idText(j.LeaseID))
	if j.CancelRequested {
		line("cancel", "requested")
	}
	at("created", j.CreatedAt)
	at("updated", j.UpdatedAt)
	at("run at", j.RunAt)
	at("retry at", j.RetryAt)
	switch {
	case j.State == lessor.Completed:
		line("progress", "100 %") // whatever the worker reported last
	case j.Progress != nil:
		line("progress", fmt.Sprintf("%.0f %%", *j.Progress*100))
	}
	line("message", text(j.Message))
	line("error", text(j.Error))
	if q := j.Question; q != nil {
		line("question", q.Text)
		line("choices", strings.Join(q.Choices, ", "))
		at("answer until", q.ExpiresAt)
		line("answer", text(q.Answer))
	}
	if j.MessagesSent > 0 {
		line("messages", fmt.Sprintf("%d sent, %d seen", j.MessagesSent, j.MessagesSeen))
	}
	if j.Interruptions > 0 {
		line("interruptions", fmt.Sprint(j.Interruptions))
	}
	if j.JournalEntries > 0 {
		line("journal", fmt.Sprintf("entries: %d", j.JournalEntries))
	}
	line("payload", string(j.Payload))
	line("checkpoint", string(j.Checkpoint))
	line("result", string(j.Result))
	line("trace", j.TraceID)
}

func writeWhy(t *table.Table, why lessor.Why, _ time.Time) {
	if why.Place != nil {
		t.Row(fmt.Sprintf("place in line: %d", *why.Place))
	}
	for i, r := range why.Reasons {
		t.Row(fmt.Sprintf("%d.", i+1), r.Code, r.Detail)
	}
	if len(why.Reasons) == 0 {
		t.Row("nothing keeps it from running")
	}
}
