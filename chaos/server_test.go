package chaos

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lessor/client"
)

var binary string

func TestMain(m *testing.M) {
	if server := os.Getenv(workerVariable); server != "" {
		doomed(server)
		return
	}
	if server := os.Getenv(agentVariable); server != "" {
		runAgent(server)
		return
	}
	if servers := os.Getenv(listenVariable); servers != "" {
		listen(servers)
		return
	}
	// The tests wait more than they compute. A -parallel on the command line takes precedence.
	_ = flag.Set("test.parallel", strconv.Itoa(runtime.NumCPU()+1)) // package testing has registered it
	os.Exit(build(m))
}

// build builds the binary once for all tests.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lessor-chaos")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "lessor")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/lessor").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build lessor: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// server is a `lessor serve` that can be killed and started again on the same folder and port.
type server struct {
	t    *testing.T
	data string
	env  []string
	addr string
	// program is what runs: another release, or "" for this tree.
	program string
	wrap    func(*exec.Cmd) // changes the command before its start; nil = no change
	onLine  func(string)    // gets the lines of its greeting after the first; nil = they are not read

	mu  sync.Mutex
	cmd *exec.Cmd
}

func start(t *testing.T, env ...string) *server {
	t.Helper()
	s := &server{t: t, data: t.TempDir(), env: env, addr: "127.0.0.1:0"}
	s.start()
	t.Cleanup(s.checkLog)
	t.Cleanup(s.kill)
	return s
}

// checkLog wants no panic in what the server wrote, and shows its end if the test failed.
func (s *server) checkLog() {
	raw, _ := os.ReadFile(filepath.Join(s.data, "stderr")) // it may have written nothing
	text := string(raw)
	if at := strings.Index(text, "panic: "); at >= 0 {
		s.t.Errorf("a server panicked: %.3000s", text[at:])
	}
	if s.t.Failed() {
		s.t.Logf("the log of %s ends with\n%s", s.addr, text[max(0, len(text)-2000):])
	}
}

// start runs the server and returns when it listens.
func (s *server) start() {
	s.t.Helper()
	if err := s.try(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) try() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = exec.Command(cmp.Or(s.program, binary), "serve", "--data", s.data, "--listen", s.addr)
	s.cmd.Env = append(os.Environ(), s.env...)
	if s.wrap != nil {
		s.wrap(s.cmd)
	}
	log, err := os.OpenFile(filepath.Join(s.data, "stderr"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own copy
	s.cmd.Stderr = log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "listening on http://"); ok {
			s.addr = strings.Fields(url)[0]
			go func() {
				for lines.Scan() { // keep the pipe empty, so that the server never blocks on it
					if s.onLine != nil {
						s.onLine(lines.Text())
					}
				}
			}()
			return nil
		}
	}
	_ = s.cmd.Wait() // it closed its output without the line
	return errors.Join(errors.New("the server did not print its address"), lines.Err())
}

// kill sends SIGKILL to the process that this test started.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()         // it was killed
	s.cmd = nil
}

// wait waits until the server has ended by itself, and returns its exit code.
func (s *server) wait() int {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	late := time.AfterFunc(30*time.Second, func() {
		s.t.Error("the server did not end by itself in 30 s")
		_ = s.cmd.Process.Kill()
	})
	defer late.Stop()
	_ = s.cmd.Wait() // it says the same
	return s.cmd.ProcessState.ExitCode()
}

func (s *server) client() *client.Client {
	s.t.Helper()
	c, err := client.New(client.Config{Server: "http://" + s.addr, Timeout: 5 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}
