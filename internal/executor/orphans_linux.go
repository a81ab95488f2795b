package executor

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes the shim the parent of every process that loses its own below the shim. A process that left the
// group of its command stays a descendant of the shim this way, and can be ended with the command.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reapOrphans removes ended orphans from the process table until ctx is done. Those in started are left to os/exec.
func reapOrphans(ctx context.Context, started *children) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
		started.reap()
	}
}

func (c *children) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range processes() {
		if p.parent == os.Getpid() && p.ended && !c.ids[p.id] {
			_, _ = syscall.Wait4(p.id, nil, syscall.WNOHANG, nil) // it has ended
		}
	}
}

// signalStrays sends sig to the descendants of the shim that left the group of the command. A process may start
// another one while the list is read, so it is read until it shows no new ones.
func signalStrays(command *os.Process, sig syscall.Signal) {
	for signalled := map[int]bool{}; ; {
		n := len(signalled)
		for _, id := range strays(command) {
			if !signalled[id] {
				signalled[id] = true
				_ = syscall.Kill(id, sig) // the process may have ended
			}
		}
		if len(signalled) == n {
			return
		}
	}
}

// strays returns the running descendants of the shim that are not in the group of the command.
func strays(command *os.Process) (ids []int) {
	children := map[int][]tableRow{}
	for _, p := range processes() {
		children[p.parent] = append(children[p.parent], p)
	}
	for line := children[os.Getpid()]; len(line) > 0; {
		p := line[0]
		line = append(line[1:], children[p.id]...)
		if p.group != command.Pid && !p.ended {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// tableRow is a line of the process table.
type tableRow struct {
	id, parent, group int
	ended             bool
}

// processes reads the process table. It is empty where /proc is not mounted.
func processes() (all []tableRow) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }() // it was only read
	names, _ := proc.Readdirnames(0)    // what came is what there is
	for _, name := range names {
		id, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		// The name of the program is in parentheses and may contain anything. Its state, parent and group follow.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1])) // the kernel writes numbers
		group, _ := strconv.Atoi(string(fields[2]))
		all = append(all, tableRow{id: id, parent: parent, group: group, ended: string(fields[0]) == "Z"})
	}
	return all
}
