package cli

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"lessor/internal/executor"
	"lessor/internal/sentinel"
)

func (a *app) beatCommand() *cobra.Command {
	var status string
	cmd := &cobra.Command{
		Use:   "beat",
		Short: "Inside a job: say that the work moves",
		Long: `Beat is for use inside a command of "lessor work". It says that the work moves, which keeps the lease of a command run
with --extend-on progress, and with --status what it does now. It needs no server: the command's shim passes it on.`,
		Example: `  lessor beat
  lessor beat --status waiting`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&status, "status", "", "what the command does now: running, waiting or processing")
	completes(cmd, "status", oneOf(sentinel.Statuses()...))
	cmd.RunE = a.run(func(*cobra.Command, []string) error {
		if status != "" && !slices.Contains(sentinel.Statuses(), sentinel.Status(status)) {
			return usagef("--status: %q is none of running, waiting and processing", status)
		}
		return a.inJob(func(f *sentinel.Folder) error { return executor.SendBeat(f, sentinel.Status(status)) })
	})
	return cmd
}

// inJob calls fn with the folder of the job that we run in.
func (a *app) inJob(fn func(*sentinel.Folder) error) error {
	f, err := executor.Inside(a.getenv)
	if errors.Is(err, executor.ErrNoJob) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}
