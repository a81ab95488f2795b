// Package cli is the lessor command.
//
// A command decodes its arguments, makes one call of the client and prints the answer: a table for people, or with
// --json the same shape as the API. show.go and list.go do this for all commands; each command declares its flags, its
// call and its columns. A command decides nothing.
//
// Scripts rely on the exit codes: 0 done, 1 refused (by the server, or a lease request was denied), 2 wrong usage,
// 3 fault (no server could be reached, or something broke). An error is one line on standard error that begins with
// "lessor: " and says what to do next.
package cli

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// IO is the input, the output and the environment of the command.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
}

// app is one run of the program; all commands share it.
type app struct {
	IO
	reach reachFlags
	json  bool
	// withheld says why the admin token of the data folder was not sent; "" if it was sent, or there is none.
	withheld string
	started  bool // the arguments were valid, and a command began
}

// Main runs the command that args name and returns the exit code. SIGINT and SIGTERM end ctx; a second one ends the
// process at once.
func Main(ctx context.Context, args []string, io IO) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // after the first signal, signals have their default effect
	a := &app{IO: io}
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.started {
		err = usagef("%w (see --help)", err)
	}
	a.report(ctx, err)
	return exitCode(err)
}

// rootCommand returns the table of commands.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "lessor",
		Short: "Leases for work: a job scheduler whose jobs live on heartbeats",
		Long: `Lessor hands out jobs under leases. Heartbeats keep a lease alive; when they stop, the job goes to
another worker.

Start a server:     lessor serve
Submit a job:       lessor submit hello --payload '{"name":"world"}'
See what happens:   lessor jobs`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          a.run(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.AddGroup(
		&cobra.Group{ID: "server", Title: "Server:"},
		&cobra.Group{ID: "work", Title: "Jobs and leases:"},
		&cobra.Group{ID: "schedule", Title: "Schedules, runs and tenants:"},
		&cobra.Group{ID: "operate", Title: "Operation:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("server", a.serveCommand(), a.backupCommand(), a.doctorCommand(), a.logLevelCommand(), a.benchCommand())
	add("work", a.submitCommand(), a.workCommand(), a.jobsCommand(), a.leasesCommand(), a.workersCommand(),
		a.beatCommand(), a.progressCommand())
	add("schedule", a.schedulesCommand(), a.runsCommand(), a.locksCommand(), a.circuitsCommand(), a.tenantsCommand(),
		a.handlersCommand())
	add("operate", a.topCommand(), a.capacityCommand(), a.drainCommand(), a.recoveryCommand(), a.alertsCommand(),
		a.auditCommand(), a.tokenCommand())
	root.AddCommand(a.versionCommand(), a.shimCommand())
	root.InitDefaultCompletionCmd()
	checkArguments(root)
	return root
}

// checkArguments makes cmd and its subcommands accept the arguments that their Use lines name, and name them in errors.
// A command that sets Args checks its arguments itself.
func checkArguments(cmd *cobra.Command) {
	words := strings.Fields(cmd.Use)[1:]
	if cmd.Args == nil {
		cmd.Args = cobra.ExactArgs(len(words))
		if len(words) == 0 {
			cmd.Args = cobra.NoArgs
		} else if strings.HasSuffix(cmd.Use, "…") {
			cmd.Args = cobra.MinimumNArgs(len(words))
		}
	}
	if check := cmd.Args; len(words) > 0 && cmd.ValidArgs == nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) == nil {
				return nil
			}
			return fmt.Errorf("got %d arguments, want: %s", len(args), cmd.UseLine())
		}
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	for _, c := range cmd.Commands() {
		checkArguments(c)
	}
}

// run marks that a command began: an error before that is wrong usage.
func (a *app) run(fn func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		return fn(cmd, args)
	}
}

// getenv returns an environment variable, "" if it is not set.
func (a *app) getenv(name string) string {
	for _, e := range a.Environ {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
