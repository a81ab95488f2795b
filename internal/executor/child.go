package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"lessor/internal/sentinel"
)

const (
	// gonePoll is how often the processes of a stopped command are checked.
	gonePoll = 20 * time.Millisecond
	// drainOutput is how long output is still read after a command has ended. Only a process that could not be ended
	// with it can keep it open for longer.
	drainOutput = time.Second
)

// child is a running command.
type child struct {
	cmd   *exec.Cmd
	pipes []*os.File // our ends of its output
	pumps sync.WaitGroup
}

// argv returns the program to start. A shell sets the limits and then becomes the command, because a process cannot
// set them for another one before it starts.
func (t Task) argv() []string {
	argv := t.Command
	if t.Shell {
		argv = []string{"/bin/sh", "-c", strings.Join(t.Command, " ")}
	}
	if t.Nice == 0 && t.Memory == 0 {
		return argv
	}
	script := `exec "$@"`
	if t.Nice != 0 {
		script = fmt.Sprintf(`exec nice -n %d "$@"`, t.Nice)
	}
	if t.Memory != 0 {
		script = fmt.Sprintf("ulimit -v %d && ", (t.Memory+1023)/1024) + script
	}
	return append([]string{"/bin/sh", "-c", script, "sh"}, argv...)
}

// startChild starts the command of o in its folder.
func startChild(f *sentinel.Folder, o order, environ []string, out, errs *output) (*child, error) {
	argv := o.Task.argv()
	c := &child{cmd: exec.Command(argv[0], argv[1:]...)} //nolint:noctx // end stops it, not a context
	c.cmd.Dir = f.Path()
	c.cmd.Env = append(allowed(environ, o.Task.Env), variables(f, o.Grant)...)
	ownGroup(c.cmd)
	var theirs []*os.File
	for _, to := range []*output{out, errs} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, closeAll(theirs), closeAll(c.pipes))
		}
		c.pipes, theirs = append(c.pipes, r), append(theirs, w)
		if to == out {
			c.cmd.Stdout = w
		} else {
			c.cmd.Stderr = w
		}
	}
	err := c.cmd.Start()
	if err = errors.Join(err, closeAll(theirs)); err != nil {
		return nil, errors.Join(err, closeAll(c.pipes))
	}
	for i, to := range []*output{out, errs} {
		c.pumps.Go(func() { pump(c.pipes[i], to) })
	}
	return c, nil
}

// pump copies until the pipe ends or is closed.
func pump(from *os.File, to *output) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_, _ = to.Write(buf[:n]) // never fails
		}
		if err != nil {
			return
		}
	}
}

func closeAll(files []*os.File) error {
	var err error
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// wait returns when the command and all its output have ended. When stop is done, it sends SIGTERM to all processes of
// the command, and SIGKILL after grace; stopped is false if the command had ended by itself before.
func (c *child) wait(stop context.Context, grace func() time.Duration) (state *os.ProcessState, stopped bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.cmd.Wait() // the state says it
	}()
	reaping, reaped := context.WithCancel(context.WithoutCancel(stop))
	var reaper sync.WaitGroup
	reaper.Go(func() { reapOrphans(reaping, &children{ids: map[int]bool{c.cmd.Process.Pid: true}}) })
	defer reaper.Wait()
	defer reaped()
	select {
	case <-ended:
	case <-stop.Done():
		select {
		case <-ended: // both at once
		default:
			stopped = true
			c.end(ended, grace())
			<-ended
		}
	}
	kill(c.cmd.Process) // what it started and left behind
	late := time.AfterFunc(drainOutput, func() { _ = closeAll(c.pipes) })
	c.pumps.Wait()
	if late.Stop() {
		_ = closeAll(c.pipes) // they were only read
	}
	return c.cmd.ProcessState, stopped
}

// end sends SIGTERM to all processes of the command, and SIGKILL after grace. A shell often ends before its commands,
// so the grace is for all of them.
func (c *child) end(ended <-chan struct{}, grace time.Duration) {
	terminate(c.cmd.Process)
	over := time.NewTimer(grace)
	defer over.Stop()
	select {
	case <-over.C:
		kill(c.cmd.Process)
		return
	case <-ended:
	}
	check := time.NewTicker(gonePoll)
	defer check.Stop()
	for !allGone(c.cmd.Process) {
		select {
		case <-over.C:
			return // wait kills what is left
		case <-check.C:
		}
	}
}

// children are the processes that this one started and waits for. The others below it are orphans that it adopted.
type children struct {
	mu  sync.Mutex // held over the start of a process, which may end before its id is known
	ids map[int]bool
}

func (c *children) start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		if c.ids == nil {
			c.ids = map[int]bool{}
		}
		c.ids[cmd.Process.Pid] = true
	}
	return err
}

// wait waits for a process that start started.
func (c *children) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ids, cmd.Process.Pid)
	return err
}
