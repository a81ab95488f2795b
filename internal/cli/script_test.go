package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"lessor/internal/config"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"lessor": func() {
			io := IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Program: os.Args[0]}
			os.Exit(Main(context.Background(), os.Args[1:], io))
		},
	})
}

// TestScripts runs testdata/script: the program as users run it. Besides the usual commands a script has
//
//	fake FILE           start a server that gives the answers of FILE and writes what it is asked to $WORK/asked
//	port NAME           set NAME to a free port, and LESSOR_SERVER to the server there
//	ready               wait until the server at LESSOR_SERVER is ready
//	exits N CMD…        run CMD, which must exit with N
//	keep NAME [PATH]    set NAME to the last output, or to the value at PATH (a.0.b) of its JSON
//	awaitout TEXT CMD…  run CMD until its output has TEXT
//	sigterm             send SIGTERM to the commands in the background
func TestScripts(t *testing.T) {
	occupyDefaultPort(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"fake": startFake, "port": freePort, "ready": awaitReady, "exits": exits, "keep": keep, "sigterm": sigterm,
			"awaitout": awaitOutput,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			examples, err := filepath.Abs("../../docs/examples")
			env.Setenv("EXAMPLES", examples)
			return err
		},
	})
}

// occupyDefaultPort takes the port that `lessor serve` uses by default, so that a script that relies on it fails here,
// and not only on the machine of somebody who has a server running.
func occupyDefaultPort(t *testing.T) {
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", config.Default().Listen)
	if err != nil {
		return // a server is running
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "a script called the default server", http.StatusTeapot)
	}))
	_ = server.Listener.Close() // it is replaced
	server.Listener = ln
	server.Start()
	t.Cleanup(server.Close)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("usage: exits N CMD…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("run %s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code is %d, want %d", got, want)
	}
}

func keep(ts *testscript.TestScript, _ bool, args []string) {
	out := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) > 1 {
		var v any
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			ts.Fatalf("the output is not JSON: %v", err)
		}
		for word := range strings.SplitSeq(args[1], ".") {
			switch at := v.(type) {
			case map[string]any:
				v = at[word]
			case []any:
				i, err := strconv.Atoi(word)
				if err != nil || i >= len(at) {
					ts.Fatalf("no %s in %s", args[1], out)
				}
				v = at[i]
			}
		}
		out = fmt.Sprint(v)
	}
	ts.Setenv(args[0], out)
}

func freePort(ts *testscript.TestScript, _ bool, args []string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	ts.Check(ln.Close())
	ts.Setenv(args[0], port)
	ts.Setenv("LESSOR_SERVER", "http://127.0.0.1:"+port)
}

// readyWithin is far more than a start takes, also on a busy machine.
const readyWithin = 30 * time.Second

func awaitReady(ts *testscript.TestScript, _ bool, _ []string) {
	for end := time.Now().Add(readyWithin); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(ts.Getenv("LESSOR_SERVER") + "/health/ready")
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	ts.Fatalf("no server was ready within %s", readyWithin)
}

func awaitOutput(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(readyWithin); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := ts.Exec(args[1], args[2:]...); err == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
	}
	ts.Fatalf("%q did not appear within %s", args[0], readyWithin)
}

func sigterm(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

// startFake reads answers: a line "METHOD PATH STATUS", then the body, up to an empty line.
func startFake(ts *testscript.TestScript, _ bool, args []string) {
	type answer struct {
		status int
		body   string
	}
	answers := map[string]answer{}
	for block := range strings.SplitSeq(strings.TrimSpace(ts.ReadFile(args[0])), "\n\n") {
		head, body, _ := strings.Cut(block, "\n")
		f := strings.Fields(head)
		status, err := strconv.Atoi(f[2])
		ts.Check(err)
		answers[f[0]+" "+f[1]] = answer{status, body}
	}
	var mu sync.Mutex
	asked := ts.MkAbs("asked")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		f, err := os.OpenFile(asked, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			fmt.Fprintf(f, "%s %s %s token=%s\n", r.Method, r.URL, body, token)
			_ = f.Close()
		}
		a, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			a = answer{http.StatusTeapot, "the script gives no answer for this"}
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	ts.Defer(server.Close)
	ts.Setenv("LESSOR_SERVER", server.URL)
}
