package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inject has system calls of running processes, and of those that they start, fail or hang as strace's option says,
// until the returned function is called.
func inject(t *testing.T, fault string, pids ...int) (end func()) {
	t.Helper()
	calls, _, _ := strings.Cut(fault, ":")
	args := []string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + calls, "-e", "inject=" + fault}
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	cmd := exec.Command("strace", args...)
	if err := cmd.Start(); err != nil {
		t.Fatalf("strace: %v", err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Signal(syscall.SIGINT) // it detaches
			_ = cmd.Wait()
		}
	}
	t.Cleanup(end)
	for deadline := time.Now().Add(60 * time.Second); !traced(pids); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("strace does not attach")
		}
	}
	return end
}

// traced reports whether every thread of the processes that live is traced.
func traced(pids []int) bool {
	for _, pid := range pids {
		files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status") // the pattern is right
		for _, file := range files {
			text, _ := os.ReadFile(file) // the thread may have ended
			if strings.Contains(string(text), "TracerPid:\t0\n") {
				return false
			}
		}
	}
	return true
}
