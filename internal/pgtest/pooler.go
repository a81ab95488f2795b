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
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Pooler is a pgbouncer in transaction mode.
type Pooler struct {
	dir    string
	cmd    *exec.Cmd
	exited chan struct{}
}

// ErrNoPooler says that there is no pgbouncer here.
var ErrNoPooler = errors.New("no pgbouncer here (Debian: apt-get install pgbouncer)")

// StartPooler starts a pooler in front of a server. Stop must be called.
func StartPooler(ctx context.Context, s *Server) (_ *Pooler, err error) {
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
	p := &Pooler{dir: dir, exited: make(chan struct{})}
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
		_ = p.cmd.Wait() // how it ended is in its log
		close(p.exited)
	}()
	for end := time.Now().Add(startTime); ; {
		c, err := pgconn.Connect(ctx, p.URL("postgres"))
		if err == nil {
			return p, c.Close(ctx)
		}
		if time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("the pooler does not answer: %w", err), p.Stop())
		}
		pause := time.NewTimer(20 * time.Millisecond)
		<-pause.C
	}
}

func (p *Pooler) file() string { return filepath.Join(p.dir, "pgbouncer.ini") }

func (p *Pooler) write(s *Server) error {
	text := fmt.Sprintf("[databases]\n* = host=%s user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = %s\n"+
		"auth_type = any\npool_mode = transaction\nmax_client_conn = 200\ndefault_pool_size = 50\nlogfile = %s/log\nignore_startup_parameters = extra_float_digits\n",
		s.dir, p.dir, p.dir)
	return os.WriteFile(p.file(), []byte(text), 0o644) //nolint:gosec // the pooler runs as another user
}

// Switch has the pooler use another server, without any client's connection breaking.
func (p *Pooler) Switch(s *Server) error {
	if err := p.write(s); err != nil {
		return err
	}
	return p.cmd.Process.Signal(syscall.SIGHUP)
}

// URL returns the address of a database.
func (p *Pooler) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s&port=6432", url.PathEscape(database), url.QueryEscape(p.dir))
}

// Stop ends the pooler and removes everything.
func (p *Pooler) Stop() error {
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-p.exited
	return errors.Join(err, os.RemoveAll(p.dir))
}
