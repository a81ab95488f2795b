package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"lessor/internal/executor"
	"lessor/internal/sentinel"
)

func (a *app) progressCommand() *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use:   "progress FRACTION",
		Short: "Inside a job: say how much of the work is done",
		Long: `Progress is for use inside a command of "lessor work". It says how much of the work is done, from 0 to 1, which the
server shows with the job. It counts as a beat, too. It needs no server: the command's shim passes it on, the newest one
at most once a second.`,
		Example: `  lessor progress 0.4
  lessor progress 0.9 --message 'frame 90 of 100'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&message, "message", "", "what is being done, at most 500 characters")
	cmd.RunE = a.run(func(_ *cobra.Command, args []string) error {
		fraction, err := strconv.ParseFloat(args[0], 64)
		if err != nil || !(fraction >= 0 && fraction <= 1) { // NaN is neither
			return usagef("%q is not a number from 0 to 1", args[0])
		}
		return a.inJob(func(f *sentinel.Folder) error { return executor.SendProgress(f, fraction, message) })
	})
	return cmd
}
