package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"lessor/internal/config"
	"lessor/internal/executor"
	"lessor/internal/sentinel"
)

func (a *app) beatCommand() *cobra.Command {
	var status string
	cmd := &cobra.Command{
		Use:   "beat",
		Short: "Inside a job: report that the work makes progress",
		Long: `Beat is for use inside a command of "lessor work". It reports that the work makes progress, which keeps
the lease of a command that runs with --extend-on progress. With --status it also reports the command's status. It needs
no server: the command's shim passes it on.`,
		Example: `  lessor beat
  lessor beat --status waiting`,
	}
	oneOf(cmd, &status, "status", "the command's current status", sentinel.Statuses()...)
	cmd.RunE = a.run(func(*cobra.Command, []string) error {
		return a.inJob(func(f *sentinel.Folder) error { return executor.SendBeat(f, sentinel.Status(status)) })
	})
	return cmd
}

// inJob calls fn with the folder of the job that this process belongs to.
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

func (a *app) progressCommand() *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use:   "progress FRACTION",
		Short: "Inside a job: report how much of the work is done",
		Long: `Progress is for use inside a command of "lessor work". It reports how much of the work is done, from 0
to 1; the server shows it with the job. It counts as a beat. It needs no server: the command's shim passes on the newest
report, at most once a second.`,
		Example: `  lessor progress 0.4
  lessor progress 0.9 --message 'frame 90 of 100'`,
	}
	cmd.Flags().StringVar(&message, "message", "", "description of the current step, at most 500 characters")
	cmd.RunE = a.run(func(_ *cobra.Command, args []string) error {
		fraction, err := strconv.ParseFloat(args[0], 64)
		if err != nil || !(fraction >= 0 && fraction <= 1) { // NaN is neither
			return usagef("%q is not a number from 0 to 1", args[0])
		}
		return a.inJob(func(f *sentinel.Folder) error { return executor.SendProgress(f, fraction, message) })
	})
	return cmd
}

func (a *app) askCommand() *cobra.Command {
	var choices []string
	var within duration
	cmd := &cobra.Command{
		Use:   "ask QUESTION",
		Short: "Inside a job: ask a person, and print the answer",
		Long: `Ask is for use inside a command of "lessor work". If the question has an answer, it prints the answer.
If it was not asked before, the command is ended with SIGTERM and the job waits, without a lease, until somebody answers
by "lessor jobs answer" or on the job's page. The command is then run again, and this time ask prints the answer. That
costs no attempt. Keep the command's progress in its checkpoint. If nobody answered in time, ask exits with code 1.
A question that the server would refuse is not asked: ask exits with code 2, and the command goes on.`,
		Example: `  lessor ask 'Deploy to production?' --choice yes --choice no --within 24h`,
	}
	cmd.Flags().StringArrayVar(&choices, "choice", nil, "an answer that is allowed; may be given up to 20 times")
	cmd.Flags().Var(&within, "within", "how long to wait for the answer (default 7d)")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		return a.inJob(func(f *sentinel.Folder) error {
			answer, err := executor.Ask(cmd.Context(), f, args[0], choices, within.Duration)
			switch {
			case errors.Is(err, executor.ErrBadQuestion):
				return usageError{err}
			case errors.Is(err, executor.ErrUnanswered):
				return refusedError{err}
			case errors.Is(err, context.Canceled):
				return fmt.Errorf("asked: the job waits for `lessor jobs answer %s ANSWER`, "+
					"and the command is then run again", a.getenv("LESSOR_JOB_ID"))
			case err == nil:
				a.say("%s", answer)
			}
			return err
		})
	})
	return cmd
}

// maxToken bounds the size of a token.
const maxToken = 4096

// shimCommand is started by `lessor work` for each command. It is not for people.
func (a *app) shimCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "shim FOLDER",
		Short:  "Run one command; started by `lessor work`",
		Hidden: true,
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		token, err := io.ReadAll(io.LimitReader(a.In, maxToken))
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		return executor.RunShim(cmd.Context(), executor.ShimConfig{
			Folder: args[0], Token: string(token), Environ: a.Environ, Log: a.logger(config.Default()),
		})
	})
	return cmd
}
