package executor

import (
	"os/exec"
	"sync"
)

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
