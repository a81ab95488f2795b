package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/printer"
	"lessor/internal/sentinel"
)

// The causes for which a command is stopped.
var (
	errCancelled  = errors.New("the job was cancelled")
	errLeaseOver  = errors.New("the lease is over")
	errSuperseded = errors.New("a newer attempt asked for the folder")
	errGone       = errors.New("the folder of the job was removed")
	errTimeout    = errors.New("the command ran too long")
	errMaxRuntime = errors.New("max_runtime_exceeded") // as the server calls it
	errTerminated = errors.New("the shim was terminated")
	errNoStart    = errors.New("the command cannot be started here")
)

// errSpoiled says that a job cannot begin because of what is in its folder.
var errSpoiled = errors.New("the job's folder cannot be used")

// spoiled returns err as an errSpoiled, which fails the attempt, unless the machine lacks resources. Only a lack
// gives the job back at no cost, because the server does not bound how often that happens.
func spoiled(err error) error {
	if err == nil || lacksResources(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errSpoiled, err)
}

// ShimConfig configures a shim.
type ShimConfig struct {
	// Folder is the job's.
	Folder string
	// Token is the access token; it reaches the shim through a pipe and goes nowhere else.
	Token   string
	Environ []string
	Log     *slog.Logger
}

// shim runs one attempt.
type shim struct {
	order   order
	folder  *sentinel.Folder
	client  *client.Client
	log     *slog.Logger
	environ []string
	started time.Time
	stop    context.CancelCauseFunc // tells the command to end
	// killGrace is the time between SIGTERM and SIGKILL, in nanoseconds.
	killGrace atomic.Int64
	runner    io.Writer // receives one line when the command begins or cannot, and one when it has ended

	seq         int64         // of the last pulse
	pulseFailed bool          // the last pulse could not be written
	pulseNow    chan struct{} // the sentinel is to be written now
	wake        chan struct{} // a heartbeat has something to report
	printer     *printer.Printer
	outputs     []*os.File    // open until the printer has sent them
	ask         chan struct{} // the server is to be asked now
	updates     [3][]byte     // the last content of each of updateNames
	instructed  []byte        // the last content of the Runner's instruction
	question    *asking       // what the command asks
	messages    messages      // of keepLease

	mu       sync.Mutex
	reported reported
	warned   string // the last warning about the folder
}

// RunShim runs one attempt to its end. It returns when the end is reported or the lease is over. When ctx is done, it
// stops the command and gives the lease back.
func RunShim(ctx context.Context, cfg ShimConfig) error {
	more := make(chan os.Signal, 1) // a Runner repeats its SIGTERM, which must not kill the shim
	signal.Notify(more, syscall.SIGTERM)
	defer signal.Stop(more)
	f, err := sentinel.OpenFolder(cfg.Folder)
	if err != nil {
		return fmt.Errorf("open the job's folder: %w", err)
	}
	defer func() { _ = f.Close() }() // all that was written is synced
	held, err := inherit(f)
	if err != nil {
		return err
	}
	defer func() { _ = closeAll(held) }() // the folder is the next attempt's
	o, err := readOrder(f)
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{
		Server: o.Server, Token: cfg.Token, TokenServer: o.TokenServer,
		UserAgent: "lessor-shim",
	})
	if err != nil {
		return fmt.Errorf("reach the server: %w", err)
	}
	defer c.Close()
	o.Task = o.Task.withDefaults()
	s := &shim{
		runner: held[1],
		order:  o, folder: f, client: c, log: cfg.Log, environ: cfg.Environ,
		pulseNow: make(chan struct{}, 1), wake: make(chan struct{}, 1), ask: make(chan struct{}, 1),
		printer: printer.New(c, o.Grant.Lease.ID, o.Grant.Lease.WorkerID),
	}
	s.killGrace.Store(int64(o.Task.KillGrace))
	return s.run(ctx)
}

// Files that a shim inherits.
const (
	lockFD  = 3 // the folder's lock, held
	aliveFD = 4 // a pipe whose other end tells the Runner when the shim has ended
)

// inherit returns the files that the Runner passed on, the folder's lock first. They stay open as long as they are
// referenced. Only a Runner can start a shim, because two attempts in one folder would destroy each other.
func inherit(f *sentinel.Folder) ([]*os.File, error) {
	files := []*os.File{inherited(lockFD, "lock"), inherited(aliveFD, "alive")}
	if err := f.Holds(files[0]); err != nil {
		return nil, fmt.Errorf("a shim is started by `lessor work`, which hands it the lock of its folder: %w", err)
	}
	return files, nil
}

func (s *shim) run(ctx context.Context) error {
	defer func() { _ = closeAll(s.outputs) }() // what could not be written was warned of
	switch err := s.prepare(ctx); {
	case errors.Is(err, errSpoiled):
		return s.failStart(ctx, err)
	case err != nil:
		return s.release(ctx, fmt.Errorf("%w: %w", errNoStart, err))
	}
	if err := adoptOrphans(); err != nil {
		s.log.Warn("processes that leave the command's group will outlive it", "error", err)
	}
	stop, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(errTerminated) })()
	s.stop, s.started = cancel, time.Now()
	s.reported.begin(s.started)
	pulsing, endPulse := context.WithCancel(context.WithoutCancel(ctx))
	var pulse sync.WaitGroup
	s.pulse() // before the command begins, so that none runs without a sentinel
	pulse.Go(func() { s.keepPulse(pulsing) })
	exit, cause := s.runCommand(stop)
	endPulse()
	pulse.Wait()
	defer s.removeSentinel() // at the latest now
	switch {
	case errors.Is(cause, errLeaseOver), errors.Is(cause, errSuperseded):
		s.log.Warn("ended the command without a report", "reason", cause)
		return nil
	case errors.Is(cause, errNoStart), errors.Is(cause, errTerminated) && !s.finished(exit):
		s.sendRest(ctx, stopRestTime)
		return s.release(ctx, cause)
	}
	s.say(summary(exit))
	if s.writeExit(exit) {
		s.removeSentinel() // the exit record speaks from here on
	}
	limit := restTime
	if errors.Is(cause, errTerminated) {
		limit = stopRestTime
	}
	s.sendRest(ctx, limit)
	return s.report(ctx, exit)
}

// runCommand runs the command, keeps the lease and watches the folder. cause says why the command was stopped, or why
// its end must not be reported as it is; otherwise it is nil.
func (s *shim) runCommand(stop context.Context) (exit sentinel.Exit, cause error) {
	out, errs := s.output(lessor.Stdout, stdoutName), s.output(lessor.Stderr, stderrName)
	running, ended := context.WithCancel(context.WithoutCancel(stop)) // the lease is kept until the command has ended
	var beside sync.WaitGroup
	defer beside.Wait()
	defer ended()
	defer s.stopAfter(s.order.Task.Timeout, errTimeout)()
	if bound := s.order.Grant.Job.MaxRuntimeS; bound != nil { // the server tells it only with the next heartbeat
		defer s.stopAfter(time.Duration(*bound)*time.Second, errMaxRuntime)()
	}
	c, err := startChild(s.folder, s.order, s.environ, out, errs)
	if lacksResources(err) {
		return exit, fmt.Errorf("%w: %w", errNoStart, err)
	}
	if err != nil {
		return s.exit(nil, nil, cutText("start the command: "+err.Error(), lessor.MaxErrorText)), nil
	}
	s.say(begun)
	beside.Go(func() { s.keepLease(running) })
	beside.Go(func() { s.heed(running) })
	beside.Go(func() { s.printer.Run(running) })
	beside.Go(func() { s.watch(running) })
	state, stopped := c.wait(stop, func() time.Duration { return time.Duration(s.killGrace.Load()) })
	if cause = context.Cause(stop); !stopped && !forbidsReport(cause) {
		cause = nil // it came while the last output was read
	}
	ended()
	beside.Wait()
	s.readUpdates() // those that came after the last check
	return s.exit(state, cause, errs.last(lessor.MaxErrorText)), cause
}

// forbidsReport reports whether a cause holds also for a command that had ended before: the attempt no longer owns the
// job or the folder, or its result is lost.
func forbidsReport(cause error) bool {
	return errors.Is(cause, errLeaseOver) || errors.Is(cause, errSuperseded) || errors.Is(cause, errGone)
}

// stopAfter stops the command after d, if that is not 0 and the returned function is not called before.
func (s *shim) stopAfter(d time.Duration, cause error) (cancel func()) {
	if d == 0 {
		return func() {}
	}
	timer := time.AfterFunc(d, func() { s.stop(cause) })
	return func() { timer.Stop() }
}

// say sends a line to the Runner, which may be gone.
func (s *shim) say(line string) {
	line = strings.ReplaceAll(line[:min(len(line), maxLine-1)], "\n", " ")
	_, _ = io.WriteString(s.runner, line+"\n")
}

// failStart reports that the attempt failed before its command began.
func (s *shim) failStart(ctx context.Context, err error) error {
	s.log.Warn("the command is not started", "error", err)
	s.started = time.Now()
	exit := s.exit(nil, nil, cutText(err.Error(), lessor.MaxErrorText))
	s.say(summary(exit))
	s.writeExit(exit)
	s.removeSentinel() // a killed shim may have left it
	return s.report(ctx, exit)
}

// prepare writes the files for the command into the folder and removes those of an earlier attempt. The error is an
// errSpoiled if the folder does not allow that.
func (s *shim) prepare(ctx context.Context) error {
	answers, err := s.recordAnswer(ctx)
	if err != nil {
		return err
	}
	err = s.folder.Tidy()
	for _, name := range append([]string{resultName, checkpointName, askName}, updateNames()...) {
		err = errors.Join(err, s.folder.Remove(name))
	}
	err = errors.Join(err, s.folder.RemoveExit())
	job := s.order.Grant.Job
	err = errors.Join(err, s.folder.WriteFile(payloadName, job.Payload), s.keepAnswers(answers), s.openMessages())
	if len(job.Checkpoint) > 0 && string(job.Checkpoint) != "null" {
		err = errors.Join(err, s.folder.WriteFile(checkpointName, job.Checkpoint))
		s.reported.lastCheckpoint = job.Checkpoint // the server has it
	}
	if err != nil {
		return spoiled(fmt.Errorf("prepare the folder: %w", err))
	}
	return nil
}

// output keeps what the command writes to a stream in a file of the folder, and sends it to the server. Without the
// file the command still runs.
func (s *shim) output(stream, name string) *output {
	o := &output{
		seen: s.moved, limit: s.order.Task.MaxOutput,
		warn: func(err error) { s.log.Warn("output is not kept", "file", name, "error", err) },
	}
	f, err := s.folder.Create(name)
	if err != nil {
		o.warn(err)
		return o
	}
	o.file, s.outputs = f, append(s.outputs, f)
	s.printer.Add(stream, o)
	return o
}
