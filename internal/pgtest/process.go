//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// interrupt is the signal for a fast shutdown.
const interrupt = syscall.SIGINT

// stop is the signal that suspends a process.
const stop = syscall.SIGSTOP

// childrenOf returns the child processes of parent. It needs /proc.
func childrenOf(parent int) (ids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, file := range files {
		text, _ := os.ReadFile(file) // the process may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if id, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// goneWithin bounds the wait for the end of killed processes.
const goneWithin = time.Second

// killAll kills processes and waits for their end: the server does not start again while one holds its shared memory.
func killAll(ids []int) {
	for _, id := range ids {
		_ = syscall.Kill(id, syscall.SIGKILL) // it may have ended
	}
	late := time.After(goneWithin)
	for _, id := range ids {
		for syscall.Kill(id, 0) == nil {
			select {
			case <-time.After(time.Millisecond):
			case <-late:
				return
			}
		}
	}
}

// postgresUser returns the user of the server, which refuses to run as root.
func postgresUser() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, lookErr := user.Lookup(name)
		if lookErr != nil {
			err = lookErr
			continue
		}
		if uid, err = strconv.Atoi(u.Uid); err != nil {
			return 0, 0, err
		}
		gid, err = strconv.Atoi(u.Gid)
		return uid, gid, err
	}
	return 0, 0, fmt.Errorf("find a user for the server: %w", err)
}

// giveAway makes the server's user the owner of its folder.
func giveAway(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := postgresUser()
	if err != nil {
		return err
	}
	return os.Chown(dir, uid, gid)
}

// asPostgres makes a command run in its own process group, so that a Ctrl-C in the terminal does not reach it, and as
// the server's user if this process is root.
func asPostgres(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return
	}
	if uid, gid, err := postgresUser(); err == nil { // giveAway has reported the error
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// janitor starts a shell that waits for the end of a pipe that only this process holds open. If this process dies, the
// shell stops the server and removes its folder. The returned function ends the shell.
func janitor(dir, data string) (release func() error, err error) {
	const script = `read -r word; [ "$word" = released ] && exit 0
read -r pid < "$2/postmaster.pid" 2>/dev/null && kill -QUIT "$pid" 2>/dev/null
i=0; while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done
rm -rf "$1"`
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", script, "janitor", dir, data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the janitor: %w", err)
	}
	return func() error {
		if _, err := io.WriteString(pipe, "released\n"); err != nil {
			return err
		}
		return cmd.Wait()
	}, nil
}
