//go:build unix

package agent

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives the command its own process group, which is killed as a whole when the context is done. end kills
// what is left of the group.
func ownGroup(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	return func() {
		if cmd.Process != nil {
			_ = cmd.Cancel() // fails if nothing is left
		}
	}
}
