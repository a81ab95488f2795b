//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Pool is the one server of a test binary. The zero value starts it with the first client; Main ends it.
type Pool struct {
	once   sync.Once
	err    error
	server *server
	url    string
}

// Main runs the tests of a package and ends the server. Call it from TestMain.
func (p *Pool) Main(m *testing.M) int {
	code := m.Run()
	if p.server == nil {
		return code
	}
	if err := p.server.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "redistest:", err)
		return max(code, 1)
	}
	return code
}

// Client returns a client of the server, which is closed with the test.
func (p *Pool) Client(t testing.TB) *redis.Client {
	t.Helper()
	options, err := p.Options()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	c := redis.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Options returns the address of the server. Examples call it, because they have no testing.T.
func (p *Pool) Options() (*redis.Options, error) {
	p.once.Do(func() {
		if p.url = os.Getenv(Environment); p.url == "" {
			p.server, p.err = start(context.Background()) // of the whole test binary
		}
	})
	if p.err != nil {
		return nil, p.err
	}
	if p.server != nil {
		return p.server.options(), nil
	}
	options, err := redis.ParseURL(p.url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Environment, err)
	}
	return options, nil
}

// server is a throwaway server.
type server struct {
	dir     string
	cmd     *exec.Cmd
	exited  chan struct{}
	release func() error // ends the janitor
}

// Bounds of its start and its stop, on a busy machine.
const (
	startTime = time.Minute
	stopTime  = 10 * time.Second
)

func start(ctx context.Context) (_ *server, err error) {
	program, err := Find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "lessorredis") // short: the path of a socket may have 107 characters
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, exited: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	s.cmd = exec.CommandContext(
		context.WithoutCancel(ctx), program, "--port", "0", "--unixsocket", s.socket(), "--dir", dir, "--save", "",
		"--appendonly", "no", "--daemonize", "no", "--logfile", filepath.Join(dir, "log"),
	)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that a Ctrl-C in the terminal does not reach it
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // the log says how it ended
		close(s.exited)
	}()
	if s.release, err = janitor(dir, s.cmd.Process.Pid); err != nil {
		return nil, err
	}
	return s, s.await(ctx)
}

func (s *server) socket() string { return filepath.Join(s.dir, "redis.sock") }

func (s *server) options() *redis.Options { return &redis.Options{Network: "unix", Addr: s.socket()} }

// await waits until the server answers.
func (s *server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	c := redis.NewClient(s.options())
	defer func() { _ = c.Close() }()
	for {
		err := c.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		pause := time.NewTimer(20 * time.Millisecond)
		select {
		case <-pause.C:
		case <-s.exited:
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the server did not start:\n%s", log)
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		}
	}
}

// stop ends the server and removes everything.
func (s *server) stop() error {
	var err error
	if s.cmd != nil && s.cmd.Process != nil {
		if err = s.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		select {
		case <-s.exited:
		case <-time.After(stopTime):
			err = errors.Join(err, s.cmd.Process.Kill())
			<-s.exited
		}
	}
	if s.release != nil {
		err = errors.Join(err, s.release())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// janitor starts a shell that waits for the end of a pipe that only this process holds open. If this process dies, the
// shell stops the server and removes its folder. The returned function ends the shell.
func janitor(dir string, pid int) (release func() error, err error) {
	const script = `read -r word; [ "$word" = released ] && exit 0
kill -KILL "$2" 2>/dev/null
rm -rf "$1"`
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", script, "janitor", dir, fmt.Sprint(pid))
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
