package cli

import (
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/internal/table"
)

type submitFlags struct {
	payload, priority, tenant, key, runAt, lock, class string
	units, maxAttempts                                 int64
	tags                                               []string
	unique, wait, follow                               bool
	maxRuntime                                         duration
}

func (a *app) submitCommand() *cobra.Command {
	var f submitFlags
	cmd := a.reaching(&cobra.Command{
		Use:   "submit TYPE",
		Short: "Submit a job and print its id",
		Long: `Submit submits a job and prints its id. With --wait it also waits until the job has ended, shows its
progress on standard error and prints its result; with --follow it prints what the job prints. The exit code is then
0 if the job completed, 4 if it failed or expired, 5 if it was cancelled, and 130 if a signal ended the wait.`,
		Example: `  lessor submit hello --payload '{"name":"world"}'
  lessor submit report --payload @report.json --priority high --tag nightly
  lessor submit report --payload @report.json --wait
  lessor submit build --follow
  lessor submit mail --key order-17 --run-at +10m --max-attempts 3`,
	})
	cmd.Flags().StringVar(&f.payload, "payload", "", "JSON object for the worker: JSON, @FILE or - for standard input")
	oneOf(cmd, &f.priority, "priority", "rank before other jobs (default normal)",
		"high", "normal", "low", "background")
	wholeVar(cmd, &f.units, "units", 0, "units of capacity it needs (default 1)")
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "tenant it is for")
	cmd.Flags().StringVar(&f.key, "key", "", "idempotency key: the same key returns the same job")
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "tag; may be given several times")
	cmd.Flags().StringVar(&f.runAt, "run-at", "",
		"not before this time: RFC 3339, or +DURATION from now; the past means now")
	cmd.Flags().BoolVar(&f.unique, "unique", false, "grant it only to a worker that holds no other lease")
	cmd.Flags().StringVar(&f.lock, "lock", "",
		"lock key: two jobs of a tenant with the same lock key never run at once")
	cmd.Flags().StringVar(&f.class, "class", "", "fairness class inside the tenant")
	wholeVar(cmd, &f.maxAttempts, "max-attempts", 0, "how often it may be tried (default 5)")
	cmd.Flags().Var(&f.maxRuntime, "max-runtime", "longest run of one attempt, in whole seconds")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until it has ended, and print its result")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "wait, and print what it prints instead of its result")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		s, err := f.submission(a, cmd, args[0])
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		job, err := c.SubmitJob(cmd.Context(), s)
		switch {
		case err != nil:
			return err
		case f.wait || f.follow:
			return a.waitForEnd(cmd.Context(), c, job.ID, f.follow)
		}
		return display(a, job, func(t *table.Table, job lessor.Submitted, _ time.Time) { t.Row(job.ID.String()) })
	})
	return cmd
}

func (f submitFlags) submission(a *app, cmd *cobra.Command, jobType string) (s lessor.Submission, err error) {
	s = lessor.Submission{
		Type:           &jobType,
		Priority:       given(cmd, "priority", f.priority),
		RequestedUnits: given(cmd, "units", f.units),
		Unique:         given(cmd, "unique", f.unique),
		IdempotencyKey: given(cmd, "key", f.key),
		Tags:           f.tags,
		MaxAttempts:    given(cmd, "max-attempts", f.maxAttempts),
		TenantID:       given(cmd, "tenant", f.tenant),
		FairnessClass:  given(cmd, "class", f.class),
		LockKey:        given(cmd, "lock", f.lock),
	}
	if s.MaxRuntimeS, err = seconds(cmd, "max-runtime", f.maxRuntime); err != nil {
		return s, err
	}
	if cmd.Flags().Changed("payload") {
		if s.Payload, err = a.readJSON("--payload", f.payload); err != nil {
			return s, err
		}
	}
	if relative(f.runAt) {
		delay, err := parseDelay("--run-at", f.runAt)
		s.DelayMS = new(max(0, delay.Milliseconds())) // a time in the past means now
		return s, err
	}
	if cmd.Flags().Changed("run-at") {
		var at string
		at, err = parseInstant("--run-at", f.runAt, "+10m", time.Time{})
		s.RunAt = &at
	}
	return s, err
}
