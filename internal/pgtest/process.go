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
)

// interrupt is the signal for a fast shutdown.
const interrupt = syscall.SIGINT

// stop is the signal after which a process does nothing.
const stop = syscall.SIGSTOP

// childrenOf returns the processes that one has started, where there is a /proc.
func childrenOf(parent int) (ids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, file := range files {
		text, _ := os.ReadFile(file) // gone meanwhile
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

func killAll(ids []int) {
	for _, id := range ids {
		_ = syscall.Kill(id, syscall.SIGKILL) // gone already
	}
}

// postgresUser returns who the server runs as: it refuses root.
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

// giveAway lets the server own its folder.
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

// asPostgres runs a command as the server's user when we are root, in a process group of its own, so that a Ctrl-C in the
// terminal is ours alone.
func asPostgres(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return
	}
	if uid, gid, err := postgresUser(); err == nil { // giveAway has met the error
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// janitor starts a shell that waits for the end of a pipe which only we hold open. Should this process die in any way, the
// shell stops the server and removes its folder. The returned function lets it go.
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
