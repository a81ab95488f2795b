// Package pgtest provides PostgreSQL to tests: one throwaway server for each test binary, and for each test a database
// that is copied from a migrated template.
//
// LESSOR_TEST_POSTGRES names another server instead, by a URL with the right to create databases. Without it, the
// package looks for initdb on PATH and in the usual folders, and installs Debian's package if the process is root;
// otherwise a test fails with instructions. Nothing is left behind: the server stops with the test binary, also if that
// is killed.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Options are the options of a throwaway server.
type Options struct {
	// Durable leaves fsync on, for tests that kill the server.
	Durable bool
	// Settings are additional settings of the server, as name=value.
	Settings []string
	// FakeClock is the library with which Step sets the server's clock; see the function FakeClock.
	FakeClock string
}

// Server is a throwaway server, reached through a socket in its folder.
type Server struct {
	bin, dir string
	options  Options
	cmd      *exec.Cmd
	exited   chan struct{}
	release  func() error // ends the janitor
}

// startTime bounds a start, also on a busy machine.
const startTime = time.Minute

// Start creates a database cluster in a new folder and starts a server on it. The caller must call Stop.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	bin, err := Install(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "lessorpg") // short: the path of a socket has at most 107 characters
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if err := giveAway(dir); err != nil {
		return nil, err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", s.data(), "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir = dir
	asPostgres(initdb)
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if s.release, err = janitor(dir, s.data()); err != nil {
		return nil, err
	}
	return s, s.Up(ctx)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Up starts the server again after Kill.
func (s *Server) Up(ctx context.Context) error {
	settings := []string{
		"listen_addresses=", "max_connections=200", "shared_buffers=128MB", "max_wal_size=1GB",
		"log_min_messages=warning",
	}
	if !s.options.Durable {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	args := []string{"-D", s.data(), "-k", s.dir}
	for _, setting := range append(settings, s.options.Settings...) {
		args = append(args, "-c", setting)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own copy
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(s.bin, "postgres"), args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, log, log
	asPostgres(s.cmd)
	if s.options.FakeClock != "" {
		s.cmd.Env = s.clockEnv()
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait() // the log says how it ended
		close(exited)
	}(s.cmd, s.exited)
	return s.await(ctx)
}

// await waits until the server answers.
func (s *Server) await(ctx context.Context) error {
	err := poll(ctx, func() (bool, error) {
		select {
		case <-s.exited:
			return true, errors.New("the server has ended")
		default:
			return answers(ctx, s.URL("postgres"))
		}
	})
	if err != nil {
		return fmt.Errorf("start the server: %w\n%s", err, s.Log())
	}
	return nil
}

// answers reports whether a server accepts connections.
func answers(ctx context.Context, url string) (bool, error) {
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return false, err
	}
	return true, c.Close(ctx)
}

// poll calls done until it reports true, and returns its error. It gives up after startTime.
func poll(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		ok, err := done()
		if ok {
			return err
		}
		pause := time.NewTimer(20 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// URL returns the address of a database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s", url.PathEscape(database), url.QueryEscape(s.dir))
}

// Socket returns the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// Log returns the end of the server's log.
func (s *Server) Log() string {
	const tail = 4096
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-tail):]))
}

// Kill ends the server as a power failure would, and waits for its end. It also kills the children, which would
// otherwise answer for a moment.
func (s *Server) Kill() error {
	if s.cmd == nil || s.cmd.Process == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(stop) // so that it starts no more children; Kill reports an error
	defer killAll(childrenOf(s.cmd.Process.Pid))
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.exited
	return nil
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
	var err error
	if s.cmd != nil && s.cmd.Process != nil {
		err = s.cmd.Process.Signal(interrupt) // a fast shutdown disconnects clients
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		select {
		case <-s.exited:
		case <-time.After(stopTime):
			err = errors.Join(err, s.Kill())
		}
	}
	if s.release != nil {
		err = errors.Join(err, s.release())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// stopTime is how long a server may take for a clean shutdown.
const stopTime = 10 * time.Second
