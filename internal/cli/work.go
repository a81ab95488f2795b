package cli

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/internal/config"
	"lessor/internal/executor"
)

type workFlags struct {
	types, env                                []string
	concurrency, nice                         int
	worker, workspace, file, extendOn, engine string
	maxOutput, memory                         size
	timeout, ttl, stopGrace                   duration
	onStop                                    string
	permanentExit                             []int
	shell, drainJobs                          bool
}

func (a *app) workCommand() *cobra.Command {
	f := workFlags{onStop: string(executor.OnStopAuto)}
	cmd := a.reaching(&cobra.Command{
		Use:   "work --type TYPE [flags] -- COMMAND [ARGUMENT...]",
		Short: "Lease jobs and run a command for each",
		Long: `Work leases jobs of the given types and runs a command for each, in a folder of its own below the
workspace, with these environment variables:

  LESSOR_PAYLOAD_FILE     the job's payload, JSON
  LESSOR_RESULT_FILE      where to write the result, JSON; without it: {}
  LESSOR_CHECKPOINT_FILE  the last checkpoint, JSON; replace it to store one
  LESSOR_MESSAGES_FILE    the messages to the job, a line of JSON each
  LESSOR_FENCE            a number that rises with every lease of the job
  LESSOR_JOB_ID, LESSOR_LEASE_ID, LESSOR_WORKER, LESSOR_ATTEMPT,
  LESSOR_SESSION_ID

Exit code 0 completes the job; any other fails it, with the end of its error output, and the job is retried. After an
exit code given with --permanent-exit it is not. The command can report its state with "lessor beat" and "lessor
progress". Its output is in stdout.log and stderr.log of its folder.

A detached process, the shim, runs each command, sends the heartbeats and reports the end. The command continues when
the server or this program is killed, and is found again. On SIGTERM or SIGINT this program requests no more jobs,
says which commands are running, and exits; the commands continue. With --drain-jobs it waits for them first; a second
signal ends it at once, and the commands still continue.

Where commands cannot outlive this program (as process 1 of a container, or in a systemd unit without scopes), a
signal stops them instead: SIGTERM, SIGKILL after executor.kill_grace, and their jobs go back to the queue with their
last checkpoint and lose no attempt. All of it takes at most --stop-grace. See docs/long-jobs.md.`,
		Example: `  lessor work --type render -- ./render.sh
  lessor work --type mail --type report --concurrency 4 -- python3 job.py
  lessor work --type agent --extend-on progress --env API_KEY -- ./agent
  lessor work --type hello --shell -- 'cp $LESSOR_PAYLOAD_FILE out.json'`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeFiles, DisableFlagsInUseLine: true,
	})
	f.bind(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.types, "type", nil, "type of job to request; may be given several times (required)")
	wholeVar(cmd, &f.concurrency, "concurrency", 1,
		"commands that run at once, counting those still running from before")
	flags.StringVar(&f.worker, "worker", "",
		"worker name for lease requests; the workspace's id is appended (default: the host name and the types)")
	flags.Var(&f.ttl, "ttl", "life of a lease without a heartbeat, 100ms to 12h (default: the server's lease.ttl)")
	flags.BoolVar(&f.drainJobs, "drain-jobs", false, "on a signal, wait for the running commands before exiting")
	oneOf(cmd, &f.onStop, "on-stop",
		"what a signal does to running commands; auto stops those that cannot outlive this program",
		executor.OnStops()...)
	require(cmd, "type")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error { return a.work(cmd, args, f) })
	return cmd
}

// bind adds the flags that say how a command is run.
func (f *workFlags) bind(cmd *cobra.Command) {
	f.maxOutput, f.extendOn = size{64 * config.MiB}, string(lessor.ExtendOnLife)
	f.stopGrace = duration{10 * time.Second}
	flags := cmd.Flags()
	oneOf(cmd, &f.extendOn, "extend-on",
		"what keeps the lease alive, that the command runs or that it writes output or calls lessor beat",
		lessor.ExtendOnLife, lessor.ExtendOnProgress)
	flags.StringVar(&f.engine, "engine", "command", "name of the program in the sentinel file, like claude-code")
	flags.StringVar(&f.workspace, "workspace", "",
		"folder in which commands run (LESSOR_WORKSPACE; default: workspace in the data folder)")
	flags.BoolVar(&f.shell, "shell", false, "run the command with /bin/sh")
	flags.StringArrayVar(&f.env, "env", nil,
		"variable that the command receives besides PATH, HOME, LANG, LC_*, TZ and TMPDIR; may be given several times")
	flags.Var(&f.maxOutput, "max-output",
		"limit on the standard output that is kept, and on the error output;"+
			" a file that reaches it loses its older half")
	flags.IntSliceVar(&f.permanentExit, "permanent-exit", nil,
		"exit code after which the job is not retried, like 78; may be given several times")
	flags.Var(&f.timeout, "timeout", "end a command that runs for longer, and fail the job (default: never)")
	flags.Var(&f.memory, "memory",
		"limit on the address space of each process of a command, like 2GiB (default: no limit)")
	wholeVar(cmd, &f.nice, "nice", 0, "added to the niceness of a command, up to 19")
	flags.Var(&f.stopGrace, "stop-grace",
		"time from the signal until the platform kills this program, in which running commands are stopped")
	flags.StringVar(&f.file, "config", "",
		"YAML file with settings, of which data, workspace, telemetry.log, telemetry.log_level, sentinel.interval and "+
			"executor.kill_grace count here (LESSOR_CONFIG)")
}

func (a *app) work(cmd *cobra.Command, command []string, f workFlags) error {
	r, workspace, err := a.runner(command, f)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // nothing is left to write
	a.note("requesting %s as %s in %s", strings.Join(f.types, ", "), r.Worker(), workspace)
	return r.Run(cmd.Context())
}

func (a *app) runner(command []string, f workFlags) (r *executor.Runner, workspace string, err error) {
	loaded, err := a.workConfig(f)
	if err != nil {
		return nil, "", usageError{err}
	}
	cfg, err := a.runnerConfig(loaded.Config, command, f)
	if err != nil {
		return nil, "", err
	}
	r, err = executor.NewRunner(cfg)
	if err != nil {
		return nil, "", usageError{err}
	}
	return r, loaded.Workspace, nil
}

// workConfig loads the settings that commands need: where they run, how often they send a pulse, and how long they may
// take to end.
func (a *app) workConfig(f workFlags) (config.Loaded, error) {
	sources := config.Sources{File: cmp.Or(f.file, a.getenv("LESSOR_CONFIG")), Environ: a.Environ}
	for _, set := range []config.Flag{
		{Key: "data", Name: "--data", Value: a.reach.data},
		{Key: "workspace", Name: "--workspace", Value: f.workspace},
	} {
		if set.Value != "" {
			sources.Flags = append(sources.Flags, set)
		}
	}
	return config.Load(sources)
}

// check refuses values that no command can have.
func (f workFlags) check() error {
	switch {
	case f.concurrency < 1:
		return usagef("--concurrency: at least 1")
	case f.nice < 0 || f.nice > 19:
		return usagef("--nice: 0 to 19")
	case f.ttl.Duration != 0 && (f.ttl.Duration < 100*time.Millisecond || f.ttl.Duration > 12*time.Hour):
		return usagef("--ttl: 100ms to 12h")
	case f.stopGrace.Duration < 3*time.Second:
		return usagef("--stop-grace: at least 3s, of which 2s are to give the jobs back")
	case slices.ContainsFunc(f.permanentExit, func(code int) bool { return code < 1 || code > 255 }):
		return usagef("--permanent-exit: 1 to 255")
	}
	return nil
}

func (a *app) runnerConfig(cfg config.Config, command []string, f workFlags) (executor.Config, error) {
	if err := f.check(); err != nil {
		return executor.Config{}, err
	}
	if !f.shell {
		program, err := findProgram(command[0])
		if err != nil {
			return executor.Config{}, usageError{err}
		}
		command[0] = program
	}
	self, err := os.Executable()
	if err != nil {
		return executor.Config{}, fmt.Errorf("find this program: %w", err)
	}
	to, err := a.access()
	if err != nil {
		return executor.Config{}, err
	}
	worker := f.worker
	if worker == "" {
		host, err := os.Hostname()
		if err != nil {
			return executor.Config{}, fmt.Errorf("read the host name (give --worker instead): %w", err)
		}
		worker = host + "." + strings.Join(f.types, "+")
	}
	return executor.Config{
		Server: to.servers, Token: to.token, TokenServer: to.tokenServer, Workspace: cfg.Workspace, Worker: worker,
		Types: f.types, Concurrency: f.concurrency, TTL: f.ttl.Duration, Wait: f.drainJobs,
		OnStop: executor.OnStop(f.onStop), StopGrace: f.stopGrace.Duration,
		Shim:    []string{self, "shim"},
		Environ: a.Environ, Log: a.logger(cfg),
		Task: executor.Task{
			Command: command, Shell: f.shell, Env: f.env, Engine: f.engine, ExtendOn: lessor.ExtendOn(f.extendOn),
			MaxOutput: int64(f.maxOutput.Size), Timeout: f.timeout.Duration, Nice: f.nice, Memory: int64(f.memory.Size),
			PermanentExit: f.permanentExit, PulseEvery: cfg.Sentinel.Interval,
			KillGrace: max(cfg.Executor.KillGrace, time.Nanosecond), // 0s means "at once", not the default
		},
	}, nil
}

// findProgram returns the absolute path of a program, because the command runs in another folder.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
