//go:build linux

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"lessor"
	"lessor/client"
)

// terminal is the program on a pseudo-terminal, as a person runs it.
type terminal struct {
	t      *testing.T
	keys   *os.File // what is typed, and read from the screen
	screen *os.File // the program's side
	before unix.Termios
	cmd    *exec.Cmd
	ended  chan error
	mu     sync.Mutex
	drawn  bytes.Buffer
}

// onTerminal runs lessor on a terminal of 120 by 30 characters.
func onTerminal(t *testing.T, server string, args ...string) *terminal {
	t.Helper()
	program, err := exec.LookPath("lessor") // this test binary, by testscript
	if err != nil {
		t.Fatal(err)
	}
	s := &terminal{t: t, ended: make(chan error, 1)}
	s.keys, s.screen = openTerminal(t)
	s.resize(120)
	before, err := unix.IoctlGetTermios(int(s.screen.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	s.before = *before
	s.cmd = exec.CommandContext(t.Context(), program, args...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.screen, s.screen, s.screen
	s.cmd.Env = append(os.Environ(), "LESSOR_SERVER="+server, "LESSOR_DATA="+t.TempDir(), "TERM=xterm-256color")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(s.read)
	reading.Go(func() { s.ended <- s.cmd.Wait() })
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.keys.Close()
		_ = s.screen.Close()
		reading.Wait()
	})
	return s
}

func openTerminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	// Non-blocking, so that Close ends a Read.
	const mode = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := unix.Open("/dev/ptmx", mode, 0)
	if err != nil {
		t.Fatalf("open a terminal: %v", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatalf("unlock the terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatalf("name the terminal: %v", err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "ptmx"), screen
}

func (s *terminal) read() {
	buf := make([]byte, 1<<16)
	for {
		n, err := s.keys.Read(buf)
		s.mu.Lock()
		s.drawn.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *terminal) resize(columns uint16) {
	s.t.Helper()
	size := &unix.Winsize{Row: 30, Col: columns}
	if err := unix.IoctlSetWinsize(int(s.screen.Fd()), unix.TIOCSWINSZ, size); err != nil {
		s.t.Fatal(err)
	}
}

func (s *terminal) press(keys string) {
	s.t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatalf("type %q: %v", keys, err)
	}
}

// escapes are the sequences by which a program draws.
var escapes = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78M])`)

// all is everything that was drawn so far, as text.
func (s *terminal) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return escapes.ReplaceAllString(s.drawn.String(), " ")
}

// await waits until ok accepts the screen. A program draws only what changes, so await resizes the window to make it
// draw everything.
func (s *terminal) await(what string, ok func(screen string) bool) string {
	s.t.Helper()
	screen := ""
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); {
		for _, columns := range []uint16{119, 120} {
			s.mu.Lock()
			mark := s.drawn.Len()
			s.mu.Unlock()
			s.resize(columns)
			time.Sleep(150 * time.Millisecond)
			s.mu.Lock()
			screen = escapes.ReplaceAllString(string(s.drawn.Bytes()[mark:]), " ")
			s.mu.Unlock()
			if ok(screen) {
				return screen
			}
		}
	}
	s.t.Fatalf("the screen never had %s:\n%s", what, screen)
	return ""
}

// sees waits for texts on the screen.
func (s *terminal) sees(texts ...string) string {
	s.t.Helper()
	return s.await(fmt.Sprint(texts), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// lastWord is drawn by the test itself, after all output of the program.
const lastWord = "\x1b]the end\x07"

// ends waits for the exit code, checks that the terminal was restored, and returns when all output was read.
func (s *terminal) ends(code int) {
	s.t.Helper()
	select {
	case err := <-s.ended:
		exit, failed := errors.AsType[*exec.ExitError](err)
		if err != nil && !failed || failed && exit.ExitCode() != code || !failed && code != 0 {
			s.t.Errorf("ended with %v, want %d:\n%s", err, code, s.all())
		}
	case <-time.After(60 * time.Second):
		s.t.Fatalf("it does not end:\n%s", s.all())
	}
	after, err := unix.IoctlGetTermios(int(s.screen.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(s.before, *after); diff != "" {
		s.t.Errorf("the terminal is not as it was (-before +after):\n%s", diff)
	}
	if _, err := s.screen.WriteString(lastWord); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(60 * time.Second); !s.has(lastWord); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("what was drawn at the end is not read")
		}
	}
}

func (s *terminal) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.drawn.String(), text)
}

// serve runs a server of its own process, and returns its address and a client.
func serve(t *testing.T) (string, *client.Client) {
	t.Helper()
	program, err := exec.LookPath("lessor")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	cmd := exec.Command(program, "serve", "--listen", addr, "--data", filepath.Join(t.TempDir(), "d"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	c, err := client.New(client.Config{Server: "http://" + addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for end := time.Now().Add(readyWithin); ; time.Sleep(20 * time.Millisecond) {
		if _, err := c.Status(t.Context()); err == nil {
			return "http://" + addr, c
		} else if time.Now().After(end) {
			t.Fatalf("no server was ready: %v", err)
		}
	}
}

func submitted(t *testing.T, c *client.Client, sub lessor.Submission) lessor.JobID {
	t.Helper()
	job, err := c.SubmitJob(t.Context(), sub)
	if err != nil {
		t.Fatal(err)
	}
	return job.ID
}

func states(t *testing.T, c *client.Client, f lessor.JobFilter) map[lessor.State]int {
	t.Helper()
	all := map[lessor.State]int{}
	for job, err := range c.AllJobs(context.WithoutCancel(t.Context()), f) {
		if err != nil {
			t.Fatal(err)
		}
		all[job.State]++
	}
	return all
}

func TestTopOnATerminal(t *testing.T) {
	server, c := serve(t)
	jobs := map[string]lessor.JobID{}
	for _, who := range []string{"ann", "bob"} {
		mail := "mail." + who
		jobs[who] = submitted(t, c, lessor.Submission{Type: &mail, Payload: []byte(`{"to":"` + who + `@example.org"}`)})
		_, denial, err := c.Request(t.Context(), lessor.LeaseRequest{WorkerID: &who, Types: []string{mail}})
		if err != nil || denial != nil {
			t.Fatalf("request: %v %v", denial, err)
		}
	}
	s := onTerminal(t, server, "top")
	left := regexp.MustCompile(`(\d+)s +█+░* +` + jobs["bob"].String())
	first := left.FindStringSubmatch(s.sees("ann", "bob", "1 leases 2"))
	s.await("a countdown", func(screen string) bool {
		now := left.FindStringSubmatch(screen)
		return first != nil && now != nil && now[1] != first[1]
	})
	s.press("/bob\r")
	s.await("only bob", func(screen string) bool {
		return strings.Contains(screen, jobs["bob"].String()) && !strings.Contains(screen, jobs["ann"].String())
	})
	s.press("\r")
	s.sees("bob@example.org", "mail.bob", "esc back")
	s.press("\x1b")
	s.sees("enter inspect")
	s.press("c")
	s.sees("cancel job " + jobs["bob"].String() + "?")
	s.press("y")
	s.sees("asked the worker of " + jobs["bob"].String() + " to stop")
	for who, want := range map[string]bool{"ann": false, "bob": true} {
		if job, err := c.Job(t.Context(), jobs[who]); err != nil || job.CancelRequested != want {
			t.Errorf("cancel of %s's job requested: %v %v, want %v", who, job.CancelRequested, err, want)
		}
	}
	s.press("q")
	s.ends(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	drawn := s.drawn.String()
	for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h"} {
		if !strings.Contains(drawn, on) || strings.LastIndex(drawn, off) < strings.LastIndex(drawn, on) {
			t.Errorf("%q is not undone at the end", on)
		}
	}
}

// TestErrorsFitTheTerminal: a long error is broken between words, and a command in it can be copied.
func TestErrorsFitTheTerminal(t *testing.T) {
	s := onTerminal(t, "http://127.0.0.1:1", "jobs")
	s.ends(3)
	said := strings.ReplaceAll(s.all(), "\r\n", "\n")
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) < 2 || !strings.HasPrefix(lines[0], "lessor: ") || !strings.HasPrefix(lines[1], "  ") {
		t.Errorf("not folded:\n%s", said)
	}
	for _, line := range lines {
		if len(strings.TrimSpace(line)) > 120 {
			t.Errorf("%d characters on 120 columns: %s", len(line), line)
		}
	}
	for _, whole := range []string{"`lessor serve`", "http://127.0.0.1:1 ", "LESSOR_SERVER"} {
		if !strings.Contains(said, whole) {
			t.Errorf("%q is broken:\n%s", whole, said)
		}
	}
}

func TestBulkAsksOnATerminal(t *testing.T) {
	server, c := serve(t)
	for range 30 {
		submitted(t, c, lessor.Submission{Type: new("mail")})
	}
	s := onTerminal(t, server, "jobs", "cancel", "--type", "mail")
	s.awaitText("cancel 30 jobs? [y/N]")
	s.press("n\n")
	s.awaitText("nothing was changed")
	s.ends(1)
	if got := states(t, c, lessor.JobFilter{Type: "mail"})[lessor.Queued]; got != 30 {
		t.Fatalf("after a no %d of 30 jobs are queued", got)
	}
	s = onTerminal(t, server, "jobs", "cancel", "--type", "mail")
	s.awaitText("cancel 30 jobs? [y/N]")
	s.press("\x03")
	s.awaitText("lessor: interrupted, and nothing was changed")
	s.ends(130)
	s = onTerminal(t, server, "jobs", "cancel", "--type", "mail")
	s.awaitText("cancel 30 jobs? [y/N]")
	s.press("y\n")
	s.awaitText("of 30 jobs")
	s.awaitText("cancel: 30 matched, 30 done, 0 skipped")
	s.ends(0)
	if got := states(t, c, lessor.JobFilter{Type: "mail"})[lessor.Cancelled]; got != 30 {
		t.Errorf("after a yes %d of 30 jobs are cancelled", got)
	}
}

func TestBenchShowsABarOnATerminal(t *testing.T) {
	server, _ := serve(t)
	s := onTerminal(t, server, "bench", "--jobs", "50", "--concurrency", "4")
	s.awaitText("░ 1 of 50 jobs")
	s.awaitText("50 jobs in ")
	s.ends(0)
}

// awaitText waits for text that a program writes in lines.
func (s *terminal) awaitText(text string) {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); !strings.Contains(s.all(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%q was never written:\n%s", text, s.all())
		}
	}
}
