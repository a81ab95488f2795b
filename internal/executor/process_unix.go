//go:build unix

package executor

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// supported returns an error if commands cannot run on this system.
func supported() error { return nil }

// detach gives a shim its own session, so that neither a terminal nor the end of the Runner affects it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// ownGroup gives a command its own process group, so that all processes that it starts can be signalled.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// inherited returns a file that the Runner left open for the shim, and does not pass it on to the command.
func inherited(fd uintptr, name string) *os.File {
	syscall.CloseOnExec(int(fd))
	return os.NewFile(fd, name)
}

// terminate asks the command and all processes that it started to end.
func terminate(p *os.Process) { signalAll(p, syscall.SIGTERM) }

// kill ends the command and all processes that it started.
func kill(p *os.Process) { signalAll(p, syscall.SIGKILL) }

func signalAll(p *os.Process, sig syscall.Signal) {
	_ = syscall.Kill(-p.Pid, sig) // a group that is gone has ended
	signalStrays(p, sig)
}

// allGone reports whether no process that the command started is left.
func allGone(p *os.Process) bool {
	return errors.Is(syscall.Kill(-p.Pid, 0), syscall.ESRCH) && len(strays(p)) == 0
}

// signalOf names the signal that ended a process, "" if none did.
func signalOf(state *os.ProcessState) string {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return ""
}

// lacksResources reports whether a command could not be started because the machine lacks resources or its disk
// fails. That is not the fault of the job, and it passes.
func lacksResources(err error) bool {
	for _, e := range []syscall.Errno{
		syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EDQUOT,
		syscall.EROFS, syscall.EIO,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
