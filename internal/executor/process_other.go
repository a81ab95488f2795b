//go:build !unix

package executor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// supported says whether commands can be run here: without sessions and process groups they cannot.
func supported() error { return fmt.Errorf("run commands on this system: %w", errors.ErrUnsupported) }

func detach(*exec.Cmd) {}

func ownGroup(*exec.Cmd) {}

func inherited(fd uintptr, name string) *os.File { return os.NewFile(fd, name) }

func terminate(p *os.Process) { _ = p.Kill() }

func kill(p *os.Process) { _ = p.Kill() }

func allGone(*os.Process) bool { return true }

func signalOf(*os.ProcessState) string { return "" }

func lacksResources(error) bool { return false }
