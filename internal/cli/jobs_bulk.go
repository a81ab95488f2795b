package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

const (
	// maxBulk bounds the jobs of one bulk operation, because their ids are kept in memory.
	maxBulk = 100_000
	// bulkCallers is the number of calls at once; the server answers them with one commit.
	bulkCallers = 16
)

// jobFilterFlags select jobs.
type jobFilterFlags struct{ state, jobType, tenant, tag string }

func (f *jobFilterFlags) add(cmd *cobra.Command) {
	oneOf(cmd, &f.state, "state", "only jobs in this state", lessor.States()...)
	cmd.Flags().StringVar(&f.jobType, "type", "", "only jobs of this type")
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "only jobs of this tenant")
	cmd.Flags().StringVar(&f.tag, "tag", "", "only jobs with this tag")
}

func (f jobFilterFlags) filter() (lessor.JobFilter, error) {
	filter := lessor.JobFilter{State: lessor.State(f.state), Type: f.jobType, Tag: f.tag}
	var err error
	filter.Tenant, err = tenantFlag(f.tenant)
	return filter, err
}

// bulk is an operation on many jobs.
type bulk struct {
	verb   string
	filter jobFilterFlags
	yes    bool
	do     call[lessor.JobID, lessor.Job]
}

const selection = `Name the jobs by their ids, or select them by --state, --type, --tenant and --tag. A selection is
counted first, and nothing happens until you confirm it.`

func (a *app) jobsCancelCommand() *cobra.Command {
	var force bool
	cmd := a.bulkCommand(&cobra.Command{
		Use:   "cancel [ID…]",
		Short: "Cancel jobs, by id or filter",
		Long: `Cancel ends a waiting job at once. It asks the worker of a running job to stop; the job ends when the
worker does so or the lease expires. With --force the lease ends now.

` + selection,
		Example: `  lessor jobs cancel 0196a1b2-…
  lessor jobs cancel --state queued --type mail`,
	}, &bulk{verb: "cancel", do: func(c *client.Client, ctx context.Context, id lessor.JobID) (lessor.Job, error) {
		return c.Cancel(ctx, id, force)
	}})
	cmd.Flags().BoolVar(&force, "force", false, "end the lease now instead of asking the worker")
	return cmd
}

func (a *app) jobsRetryCommand() *cobra.Command {
	return a.bulkCommand(&cobra.Command{
		Use:   "retry [ID…]",
		Short: "Queue failed, expired or cancelled jobs again, by id or filter",
		Long: `Retry queues a job that failed, expired or was cancelled for one more attempt. A job that waits for its
retry becomes due now.

` + selection,
		Example: `  lessor jobs retry 0196a1b2-…
  lessor jobs retry --state failed --tag nightly`,
	}, &bulk{verb: "retry", do: (*client.Client).Retry})
}

// bulkCommand makes cmd run b on the named jobs, or on all that match a filter.
func (a *app) bulkCommand(cmd *cobra.Command, b *bulk) *cobra.Command {
	b.filter.add(cmd)
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().BoolVar(&b.yes, "yes", false, "apply it to all that match without asking")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		filtered := b.filter != jobFilterFlags{}
		switch {
		case filtered == (len(args) > 0):
			return usagef("name jobs, or select them by --state, --type, --tenant and --tag")
		case filtered:
			return a.bulk(cmd.Context(), b)
		}
		ids := map[string]lessor.JobID{}
		for i, arg := range args {
			id, err := parseID[lessor.JobID]("job", arg)
			if err != nil {
				return err
			}
			args[i] = id.String()
			ids[args[i]] = id
		}
		return each(a, args, "jobs", "job", func(c *client.Client, id string) (lessor.Job, string, error) {
			job, err := b.do(c, cmd.Context(), ids[id])
			return job, outcome(job), err
		})
	})
	return cmd
}

// outcome returns a job's state, and whether its cancellation is pending.
func outcome(j lessor.Job) string {
	if j.CancelRequested && j.State != lessor.Cancelled {
		return string(j.State) + ", cancel requested"
	}
	return string(j.State)
}

// bulkReport is printed after a bulk operation.
type bulkReport struct {
	Matched int  `json:"matched"`
	More    bool `json:"more"` // more jobs match than one operation takes
	Changed int  `json:"changed"`
	Skipped int  `json:"skipped"` // jobs in a state that does not allow it
}

// bulk counts the jobs that match, asks for confirmation, and handles the jobs that it counted.
func (a *app) bulk(ctx context.Context, b *bulk) error {
	filter, err := b.filter.filter()
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	ids, more, err := matching(ctx, c, filter)
	if err != nil {
		return err
	}
	report := bulkReport{Matched: len(ids), More: more}
	if len(ids) > 0 {
		if err := a.confirm(ctx, b, report); err != nil {
			return err
		}
		if err := a.doAll(ctx, c, b, ids, &report); err != nil {
			a.note("stopped after %d of %d jobs", report.Changed+report.Skipped, report.Matched)
			return err
		}
	}
	if a.json {
		return a.printJSON(report)
	}
	a.say("%s: %d matched, %d done, %d skipped", b.verb, report.Matched, report.Changed, report.Skipped)
	if report.Skipped > 0 {
		a.note("skipped jobs are in a state that does not allow it")
	}
	if more {
		a.note("there are more: repeat the command")
	}
	return nil
}

// matching returns the ids of the newest jobs that match, at most maxBulk, and whether there are more.
func matching(ctx context.Context, c *client.Client, f lessor.JobFilter) (ids []lessor.JobID, more bool, err error) {
	f.Limit = maxPage
	for job, err := range c.AllJobs(ctx, f) {
		if err != nil {
			return nil, false, err
		}
		if len(ids) == maxBulk {
			return ids, true, nil
		}
		ids = append(ids, job.ID)
	}
	return ids, false, nil
}

// confirm asks on the terminal. Without a terminal it refuses unless --yes was given.
func (a *app) confirm(ctx context.Context, b *bulk, r bulkReport) error {
	count := fmt.Sprintf("%d jobs", r.Matched)
	if r.Matched == 1 {
		count = "1 job"
	}
	switch {
	case b.yes:
		return nil
	case !isTerminal(a.In) || !isTerminal(a.Err):
		return refusedError{fmt.Errorf("this %s matches %s: repeat it with --yes", b.verb, count)}
	}
	fmt.Fprintf(a.Err, "%s %s? [y/N] ", b.verb, count)
	answer := make(chan string, 1)
	go func() { // a read from a terminal cannot be ended, so this one may last until the process ends
		line, _ := bufio.NewReader(io.LimitReader(a.In, 100)).ReadString('\n') // no answer is a no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Err)
		return leftError{", and nothing was changed", ctx.Err()}
	case given := <-answer:
		if given != "y" && given != "yes" {
			return refusedError{errors.New("nothing was changed")}
		}
		return nil
	}
}

// doAll handles all jobs, several at a time, until a call fails. A job that is refused because of its state is skipped.
func (a *app) doAll(ctx context.Context, c *client.Client, b *bulk, ids []lessor.JobID, r *bulkReport) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	m := a.meter(jobsDone)
	defer m.end()
	var next, changed, skipped atomic.Int64
	var callers sync.WaitGroup
	for range min(bulkCallers, len(ids)) {
		callers.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(len(ids)) {
					return
				}
				switch _, err := b.do(c, ctx, ids[i]); {
				case err == nil:
					changed.Add(1)
				case hasChanged(err):
					skipped.Add(1)
				default:
					fail(err)
					return
				}
				m.update(changed.Load()+skipped.Load(), int64(len(ids)))
			}
		})
	}
	callers.Wait()
	r.Changed, r.Skipped = int(changed.Load()), int(skipped.Load())
	return context.Cause(ctx)
}

// hasChanged reports whether a call failed because the job changed after it was listed.
func hasChanged(err error) bool {
	code := lessor.CodeOf(err)
	return code == lessor.CodeConflict || code == lessor.CodeJobNotFound
}
