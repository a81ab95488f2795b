package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"lessor"
	"lessor/node"
)

// child is a server in a process of its own, so that its CPU time can be told from that of its clients. It runs this
// program again with childEnv set, prints its address, and ends with its standard input: also if its parent dies.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	addr  string
	data  string
}

const (
	childEnv   = "LESSOR_BENCH_CHILD" // what the child serves: childLessor or childBare
	childData  = "LESSOR_BENCH_DATA"
	childStore = "LESSOR_BENCH_STORE"
	childCPU   = "LESSOR_BENCH_CPUPROFILE" // a file for the profile of the last child; "" = none

	childLessor = "lessor"
	childBare   = "bare"
)

// spawn starts a child. store is the URL of a database, "" for SQLite. A Lessor is ready then: it refuses earlier
// calls, and a client sends them again a second later.
func (b *bench) spawn(ctx context.Context, what, store string) (*child, error) {
	data, err := os.MkdirTemp(b.folder, "lessor-bench-")
	if err != nil {
		return nil, err
	}
	c, err := b.spawnIn(ctx, what, store, data)
	if err != nil || what != childLessor {
		return c, err
	}
	if err := c.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// spawnIn starts a child on a data folder, which is removed with it.
func (b *bench) spawnIn(ctx context.Context, what, store, data string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self), data: data}
	c.cmd.Env = append(os.Environ(), childEnv+"="+what, childData+"="+c.data, childStore+"="+store)
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.data))
	}
	c.stdin = stdin
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.data))
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not start: %w", err), c.end())
	}
	c.addr = strings.TrimSpace(line)
	return c, nil
}

// end stops the child and removes its data.
func (c *child) end() error {
	return errors.Join(c.stdin.Close(), c.cmd.Wait(), os.RemoveAll(c.data))
}

// cpuTime is the user and system time of the child so far; 0 without /proc.
func (c *child) cpuTime() time.Duration {
	p, _ := readProcess(c.cmd.Process.Pid)
	return p.used
}

// runChild is main in a child.
func runChild() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it, or dies
		cancel()
	}()
	debug.SetGCPercent(gcPercent)
	stop, err := startProfile(os.Getenv(childCPU))
	if err != nil {
		return err
	}
	defer stop()
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	what := os.Getenv(childEnv)
	if what == childBare {
		return serveBare(ctx, ln)
	}
	if ok, err := serveLarge(ctx, what, ln); ok {
		return err
	}
	cfg := config(os.Getenv(childData))
	cfg.Store = os.Getenv(childStore)
	n, err := node.Open(ctx, cfg, nil)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	fmt.Println("http://" + ln.Addr().String())
	return errors.Join(n.Serve(ctx, ln), n.Close())
}

// serveBare answers heartbeats with the bodies of Lessor and does nothing else: what HTTP and JSON alone cost.
func serveBare(ctx context.Context, ln net.Listener) error {
	const prefix = "/api/system/scheduler/leases"
	mux := http.NewServeMux()
	answer := func() lessor.HeartbeatAnswer {
		return lessor.HeartbeatAnswer{OK: true, ExpiresAt: lessor.At(time.Now()), HeartbeatAfterMS: 15_000}
	}
	mux.HandleFunc("POST "+prefix+"/{lease_id}/heartbeat", func(w http.ResponseWriter, r *http.Request) {
		var in lessor.Heartbeat
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer())
	})
	mux.HandleFunc("POST "+prefix+"/heartbeat", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			WorkerID string   `json:"worker_id"`
			LeaseIDs []string `json:"lease_ids"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		type result struct {
			LeaseID string `json:"lease_id"`
			lessor.HeartbeatAnswer
		}
		out := struct {
			Results []result `json:"results"`
		}{make([]result, len(in.LeaseIDs))}
		for i, id := range in.LeaseIDs {
			out.Results[i] = result{id, answer()}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	fmt.Println("http://" + ln.Addr().String())
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// remote is the cost of operations in this process, in a child, and in the database.
type remote struct{ own, server, database cost }

// measure is like the function measure, for a child; db may be nil.
func (c *child) measure(db *database, ops int, fn func() error) (r remote, err error) {
	runtime.GC()
	server, theirs := c.cpuTime(), time.Duration(0)
	if db != nil {
		theirs = db.cpuTime()
	}
	r.own, err = timed(ops, fn)
	r.server, r.database = r.own, r.own
	r.server.cpu = c.cpuTime() - server
	r.database.cpu = 0
	if db != nil {
		r.database.cpu = db.cpuTime() - theirs
	}
	return r, err
}

// part selects the costs of one process.
func part(rounds []remote, of func(remote) cost) (all []cost) {
	for _, r := range rounds {
		all = append(all, of(r))
	}
	return all
}

func ofOwn(r remote) cost      { return r.own }
func ofServer(r remote) cost   { return r.server }
func ofDatabase(r remote) cost { return r.database }
