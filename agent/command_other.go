//go:build !unix

package agent

import "os/exec"

// ownGroup does nothing on systems without process groups: only the command itself is killed.
func ownGroup(*exec.Cmd) (end func()) { return func() {} }
