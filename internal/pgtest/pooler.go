//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// The modes of a pooler. A pgbouncer before 1.21 supports prepared statements only in session mode.
const (
	TransactionMode = "transaction"
	SessionMode     = "session"
)

// Pooler is a pgbouncer.
type Pooler struct {
	mode   string
	dir    string
	cmd    *exec.Cmd
	exited chan struct{}
}

// ErrNoPooler means that pgbouncer is not installed.
var ErrNoPooler = errors.New("no pgbouncer here (Debian: apt-get install pgbouncer)")

// StartPooler starts a pooler in front of a server. The caller must call Stop.
func StartPooler(ctx context.Context, s *Server, mode string) (_ *Pooler, err error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if _, bad := os.Stat("/usr/sbin/pgbouncer"); bad != nil {
			return nil, ErrNoPooler
		}
		program = "/usr/sbin/pgbouncer"
	}
	dir, err := os.MkdirTemp("/tmp", "lessorpb")
	if err != nil {
		return nil, err
	}
	p := &Pooler{mode: mode, dir: dir, exited: make(chan struct{})}
	if err := errors.Join(giveAway(dir), p.write(s)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, "-q", p.file())
	p.cmd.Dir = dir
	asPostgres(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() {
		_ = p.cmd.Wait() // the log says how it ended
		close(p.exited)
	}()
	if err := poll(ctx, func() (bool, error) { return answers(ctx, p.URL("postgres")) }); err != nil {
		return nil, errors.Join(fmt.Errorf("the pooler does not answer: %w", err), p.Stop())
	}
	return p, nil
}

func (p *Pooler) file() string { return filepath.Join(p.dir, "pgbouncer.ini") }

func (p *Pooler) write(s *Server) error {
	text := fmt.Sprintf(`[databases]
* = host=%s user=postgres
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = %s
auth_type = any
pool_mode = %[3]s
max_client_conn = 200
default_pool_size = 50
logfile = %[2]s/log
ignore_startup_parameters = extra_float_digits
`, s.dir, p.dir, p.mode)
	return os.WriteFile(p.file(), []byte(text), 0o644) //nolint:gosec // the pooler runs as another user
}

// Switch directs the pooler to another server without breaking the clients' connections. Transactions that begin after
// it returns go there.
func (p *Pooler) Switch(ctx context.Context, s *Server) error {
	if err := p.write(s); err != nil {
		return err
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		at, err := ask(ctx, p.URL("postgres"), "show data_directory")
		return err == nil && at == s.data(), err
	})
}

// URL returns the address of a database.
func (p *Pooler) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s&port=6432", url.PathEscape(database), url.QueryEscape(p.dir))
}

// Stop ends the pooler and removes its folder.
func (p *Pooler) Stop() error {
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-p.exited
	return errors.Join(err, os.RemoveAll(p.dir))
}
