// Package cli is the lessor command.
//
// A command decodes its arguments, makes one call of the client and prints the answer: a table for people, or with
// --json the same shape as the API. show.go and list.go do this for all commands; each command declares its flags, its
// call and its columns. A command decides nothing.
//
// Scripts rely on the exit codes: 0 done, 1 refused (by the server, or a lease request was denied), 2 wrong usage,
// 3 fault (no server could be reached, or something broke); of submit --wait also 4 (the job failed or expired) and 5
// (it was cancelled). An error is one line on standard error that begins with
// "lessor: " and says what to do next.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lessor/internal/table"
)

// IO is the input, the output and the environment of the command.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
	Program  string // how the program was started, for hints; "" = lessor
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
		err = usagef("%s (see --help)", plainUsage(err.Error()))
	}
	a.report(ctx, err)
	if interrupted(ctx, err) {
		return exitSignal
	}
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
	root.SetFlagErrorFunc(explainFlag)
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
	add("work", a.submitCommand(), a.workCommand(), a.runOneCommand(), a.jobsCommand(), a.leasesCommand(),
		a.workersCommand(),
		a.beatCommand(), a.progressCommand(), a.askCommand())
	add("schedule", a.schedulesCommand(), a.runsCommand(), a.locksCommand(), a.circuitsCommand(), a.tenantsCommand(),
		a.handlersCommand())
	add("operate", a.topCommand(), a.capacityCommand(), a.drainCommand(), a.recoveryCommand(), a.alertsCommand(),
		a.auditCommand(), a.tokenCommand())
	root.AddCommand(a.versionCommand(), a.shimCommand())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.RunE = root.RunE // otherwise an unknown shell would be no error
	}
	root.SetHelpCommand(a.helpCommand())
	wrapped := fmt.Sprintf("FlagUsagesWrapped %d ", helpWidth)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages ", wrapped))
	prepare(root)
	return root
}

// helpWidth is the width of the narrowest terminal on which help does not wrap.
const helpWidth = 80

// prepare makes cmd and its subcommands accept the arguments that their Use lines name, name them in errors, and print
// help that fits a terminal. A command that sets Args says how many it accepts; one that sets ValidArgs accepts one of
// them or none.
func prepare(cmd *cobra.Command) {
	cmd.Long = wrap(cmd.Long)
	words := strings.Fields(cmd.Use)[1:]
	count := cmd.Args
	switch {
	case cmd.ValidArgs != nil:
		count = cobra.MaximumNArgs(1)
	case count == nil && strings.HasSuffix(cmd.Use, "…"):
		count = cobra.MinimumNArgs(len(words))
	case count == nil:
		count = cobra.ExactArgs(len(words))
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[cobra.BashCompOneRequiredFlag] != nil && !strings.Contains(cmd.Use, "--"+f.Name) {
			cmd.Use += " --" + f.Name + " " + strings.ToUpper(f.Name)
		}
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch bad := count(cmd, args) != nil; {
		case bad && cmd.HasSubCommands():
			return unknownCommand(cmd, args[0])
		case bad:
			return fmt.Errorf("got %s, want: %s", arguments(len(args)), cmd.UseLine())
		case cmd.ValidArgs != nil && cobra.OnlyValidArgs(cmd, args) != nil:
			return fmt.Errorf("%q: allowed are %s%s",
				args[0], enumerate(cmd.ValidArgs), similar(args[0], cmd.ValidArgs))
		}
		return nil
	}
	if len(words) > 0 && cmd.ValidArgs == nil && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, c := range cmd.Commands() {
		prepare(c)
	}
}

// wrap breaks the lines of each paragraph at helpWidth, unless the paragraph is indented.
func wrap(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") {
			continue
		}
		paragraphs[i] = strings.Join(table.Fold(strings.Join(strings.Fields(p), " "), helpWidth, ""), "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}

// namesOf returns the names of the subcommands of cmd.
func namesOf(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// unknownCommand refuses a command, and names what may be meant: a subcommand of another, most likely of jobs, or one
// with a similar name.
func unknownCommand(cmd *cobra.Command, name string) error {
	hint := similar(name, namesOf(cmd))
	for _, c := range cmd.Commands() {
		if slices.Contains(namesOf(c), name) && (hint == "" || c.Name() == "jobs") {
			hint = fmt.Sprintf("; did you mean `%s %s`?", c.CommandPath(), name)
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", name, cmd.CommandPath(), hint)
}

// helpCommand replaces cobra's own, which takes an unknown command for a success.
func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND…]", Short: "Show the help of a command", Args: cobra.ArbitraryArgs,
		Example: "  lessor help jobs show",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return err
			case len(rest) > 0:
				return unknownCommand(found, rest[0])
			}
			return found.Help()
		},
	}
}

// explainFlag adds to the error about an unknown flag which one may be meant. A flag behind an unknown command belongs
// to that command.
func explainFlag(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || len(unknown.GetSpecifiedName()) == 1 {
		return err
	}
	if slices.Contains(namesOf(cmd), unknown.GetSpecifiedName()) {
		return fmt.Errorf("%w; did you mean `%s %s`?", err, cmd.CommandPath(), unknown.GetSpecifiedName())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return fmt.Errorf("%w%s", err, similar("--"+unknown.GetSpecifiedName(), names))
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

func arguments(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}
