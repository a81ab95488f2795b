//go:build unix

package executor

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// supported says whether commands can be run here.
func supported() error { return nil }

// detach gives a shim a session of its own, so that neither a terminal nor the end of who started it reaches it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// ownGroup gives a command a process group of its own, so that all it starts can be told to end.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// inherited returns a file that whoever started us left open for us, and keeps it from what we start.
func inherited(fd uintptr, name string) *os.File {
	syscall.CloseOnExec(int(fd))
	return os.NewFile(fd, name)
}

// terminate asks all processes of a command's group to end.
func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) } // a group that is gone has ended

// kill ends all processes of a command's group.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // a group that is gone has ended

// groupGone reports whether no process of a command's group is left.
func groupGone(p *os.Process) bool { return errors.Is(syscall.Kill(-p.Pid, 0), syscall.ESRCH) }

// signalOf names the signal that ended a process, "" if none did.
func signalOf(state *os.ProcessState) string {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return ""
}

// lacksResources reports whether a command could not be started for want of what the machine has too little of. That
// is no fault of the job, and passes.
func lacksResources(err error) bool {
	for _, e := range []syscall.Errno{
		syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EDQUOT,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
