//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// standbyName is the application name of a standby.
const standbyName = "standby"

// Standby starts a standby of s. The caller must call its Stop too.
func (s *Server) Standby(ctx context.Context) (_ *Server, err error) {
	dir, err := os.MkdirTemp("/tmp", "lessorpg")
	if err != nil {
		return nil, err
	}
	b := &Server{bin: s.bin, dir: dir, options: s.options}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Stop())
		}
	}()
	if err := giveAway(dir); err != nil {
		return nil, err
	}
	from := fmt.Sprintf("host=%s user=postgres application_name=%s", s.dir, standbyName)
	copying := exec.CommandContext(ctx, filepath.Join(s.bin, "pg_basebackup"),
		"-D", b.data(), "-R", "-c", "fast", "--no-sync", "-d", from)
	copying.Dir = dir
	asPostgres(copying)
	if out, err := copying.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	if b.release, err = janitor(dir, b.data()); err != nil {
		return nil, err
	}
	return b, b.Up(ctx)
}

// Synchronous sets whether commits of s wait for its standby.
func (s *Server) Synchronous(ctx context.Context, on bool) error {
	name, want := "''", "0"
	if on {
		name, want = "'"+standbyName+"'", "1"
	}
	c, err := pgconn.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }() // its work is done
	for _, text := range []string{"alter system set synchronous_standby_names = " + name, "select pg_reload_conf()"} {
		if _, err := c.Exec(ctx, text).ReadAll(); err != nil {
			return err
		}
	}
	return poll(ctx, func() (bool, error) {
		got, err := c.Exec(ctx, "select count(*) from pg_stat_replication"+
			" where state = 'streaming' and sync_state = 'sync'").ReadAll()
		return err != nil || string(got[0].Rows[0][0]) == want, err
	})
}

// Processes returns the ids of all processes of the server.
func (s *Server) Processes() []int { return append(childrenOf(s.cmd.Process.Pid), s.cmd.Process.Pid) }

// Pause stops all processes of the server, so that it appears to hang.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume continues a paused server.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) error {
	for _, id := range s.Processes() {
		if err := syscall.Kill(id, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}
