package executor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

// lockPoll is how often a held folder is tried again.
const lockPoll = 50 * time.Millisecond

var errStopping = errors.New("the Runner is stopping")

var errHeld = errors.New("an earlier attempt holds the folder and does not end")

// follow starts a shim for a grant, unless ctx is done, and returns when the shim has ended, or following is done.
func (r *Runner) follow(ctx, following context.Context, g lessor.Grant) {
	log := r.cfg.Log.With("job_id", g.Job.ID.String(), "attempt", g.Job.Attempt)
	alive, err := r.start(ctx, g)
	switch {
	case errors.Is(err, errStarted):
		r.followHeld(following, g.Lease)
		return
	case err != nil:
		r.giveBack(ctx, g, err)
		return
	}
	stop := context.AfterFunc(following, func() { _ = alive.pipe.Close() }) // the reads below end
	lines := bufio.NewScanner(alive.pipe)                                   // ends with the shim
	end := ""
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == begun:
			log.Info("started", "type", g.Job.Type)
			r.hasBegun(g.Lease.ID, alive.cmd.Process)
			r.started(g.Job.ID)
		case strings.HasPrefix(line, cannotBegin):
			r.cannotStart(errors.New(strings.TrimPrefix(line, cannotBegin)))
		default:
			end = line
		}
	}
	if !stop() {
		return // the shim goes on
	}
	_ = alive.pipe.Close() // it was only read
	if err := r.children.wait(alive.cmd); err != nil {
		log.Warn("shim ended badly; its log is in the job's folder", "error", err, "folder", alive.cmd.Dir)
		r.conclude(following, g.Lease)
		return
	}
	logEnd(log, end)
}

// The lines that a shim sends to its Runner: begun, or cannotBegin and why; and, after begun, the summary of its exit
// record. A shim whose lease is over sends no summary.
const (
	begun       = "begun"
	cannotBegin = "cannot begin: "
	maxLine     = 4 << 10
)

// logEnd logs how a command ended: summary is that of its exit record, "" if it is not known.
func logEnd(log *slog.Logger, summary string) {
	switch status, how, _ := strings.Cut(summary, " "); status {
	case "":
		log.Info("ended without a result: it was stopped, or its lease was over")
	case string(lessor.Failed):
		log.Warn("failed", "status", how)
	default:
		log.Info("ended", "status", status)
	}
}

// process is a shim under way.
type process struct {
	cmd  *exec.Cmd
	pipe *os.File // ends with the shim
}

// errStarted says that this very lease has its shim already.
var errStarted = errors.New("the lease has had its shim")

// start prepares the folder of a grant and starts a shim in it. The error is an errSpoiled if what is in the folder
// does not allow that.
func (r *Runner) start(ctx context.Context, g lessor.Grant) (*process, error) {
	f, err := r.w.MakeFolder(g.Job.ID)
	if _, ok := errors.AsType[*sentinel.InvalidError](err); ok { // the job has put something else there, or closed it
		return nil, spoiled(err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // all that was written is synced
	if ctx.Err() != nil {
		return nil, errStopping
	}
	held, err := r.lock(ctx, f, g)
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.Close() }() // the shim has it now, or nobody
	if o, err := readOrder(f); err == nil && o.Grant.Lease.ID == g.Lease.ID {
		return nil, errStarted
	}
	o := order{Grant: g, Server: r.cfg.Server, TokenServer: r.cfg.TokenServer, Task: r.cfg.Task}
	if err := writeOrder(f, o); err != nil {
		return nil, spoiled(err)
	}
	return r.spawn(f, held)
}

// lock takes the folder's lock. If an earlier attempt holds it, that is asked to end and has the kill grace to do so,
// while the new lease is kept.
func (r *Runner) lock(ctx context.Context, f *sentinel.Folder, g lessor.Grant) (*os.File, error) {
	var over <-chan time.Time
	beat := time.NewTicker(time.Duration(max(g.Lease.HeartbeatAfterMS, 1)) * time.Millisecond)
	defer beat.Stop()
	again := time.NewTicker(lockPoll)
	defer again.Stop()
	for {
		held, err := f.Lock()
		if held != nil || err != nil {
			return held, spoiled(err)
		}
		if over == nil {
			if o, err := readOrder(f); err == nil && o.Grant.Lease.ID == g.Lease.ID {
				return nil, errStarted
			}
			if err := f.AskToStop(g.Lease.Fence); err != nil {
				return nil, spoiled(err)
			}
			over = time.After(r.cfg.Task.KillGrace + 4*checkInterval) // it must first see the request
		}
		select {
		case <-again.C:
		case <-beat.C:
			_, err := r.client.Heartbeat(ctx, g.Lease.ID, lessor.Heartbeat{WorkerID: &r.worker})
			if isOver(err) {
				return nil, err
			}
		case <-over:
			return nil, errHeld
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// spawn starts a shim that inherits the folder's lock, and the token through a pipe.
func (r *Runner) spawn(f *sentinel.Folder, held *os.File) (*process, error) {
	logFile, err := f.Create(shimLogName)
	if err != nil {
		return nil, spoiled(err)
	}
	alive, aliveEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, logFile.Close())
	}
	token, tokenEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, closeAll([]*os.File{logFile, alive, aliveEnd}))
	}
	argv := slices.Concat(r.lifetime.scope, r.cfg.Shim, []string{f.Path()})
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it outlives us
	cmd.Dir = f.Path()
	cmd.Env = allowed(r.cfg.Environ, slices.Concat(r.cfg.Task.Env, network))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = token, logFile, logFile
	cmd.ExtraFiles = []*os.File{lockFD - 3: held, aliveFD - 3: aliveEnd}
	detach(cmd)
	_, err = io.WriteString(tokenEnd, r.cfg.Token) // far shorter than a pipe holds
	if err == nil {
		err = r.children.start(cmd)
	}
	_ = closeAll([]*os.File{logFile, aliveEnd, token, tokenEnd}) // the shim has its own
	if err != nil {
		_ = alive.Close() // nothing will come
		return nil, fmt.Errorf("start shim: %w", err)
	}
	return &process{cmd: cmd, pipe: alive}, nil
}
