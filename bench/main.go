// Bench measures Lessor on this machine, and the peers that run in the same process. Each benchmark prints a table and
// its settings, and compares the figures that the project promises with their bounds: the exit code is 1 if one is
// missed.
//
//	go run . [-only NAME] [-quick | -full] [-peers=false] [-cpuprofile FILE]
//
// It writes to temporary folders that it removes, listens only on the loopback address, and ends by itself.
// docs/benchmarks.md describes what each benchmark measures and how fair the comparison is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"time"
)

// longest bounds a whole run: three times its duration on two cores.
const longest = 60 * time.Minute

// benchmarks run in this order.
var benchmarks = []struct {
	name, about string
	run         func(context.Context, *bench) error
}{
	{"lifecycle", "submit, grant, first heartbeat, complete; compared with River on SQLite", lifecycle},
	{"beats", "heartbeats of 64 callers against one alone: group commit", beats},
	{"growth", "each operation with much of one thing against little: jobs, tenants, leases", onDatabase(growth)},
	{"postgres", "the same lifecycle on PostgreSQL, one node and two; compared with River", onDatabase(postgres)},
	{"batches", "insert and work in batches on PostgreSQL; compared with River", onDatabase(batches)},
	{"heldopen", "the same lifecycle while another connection holds a transaction open", onDatabase(heldOpen)},
	{"due", "finding the due definitions among 100,000 against 1,000", onDatabase(due)},
	{"http", "a server process and a program with the SDK; compared with River", onDatabase(overHTTP)},
	{"heartbeats", "heartbeats over HTTP, single and in calls of 100, against a bare handler", onDatabase(heartbeats)},
	{"journal", "appends to journals against heartbeats, and grants of jobs with a journal", onDatabase(journals)},
	{"restart", "a start with a million queued jobs and 100,000 leases", onDatabase(restart)},
	{"million", "a million workers: their heartbeats, and their return after an outage", million},
	{"polls", "what 10,000 requests that wait for work cost", polls},
	{"peers", "Lessor beside River, Asynq, beanstalkd, NATS JetStream and etcd", onDatabase(compare)},
	{"latency", "from submission to start over HTTP, workers waiting", onDatabase(latency)},
}

// gcPercent is the setting of cmd/lessor. All sides use it.
const gcPercent = 400

var errMissed = errors.New("a bound was missed")

func main() {
	if os.Getenv(childEnv) != "" {
		if err := runChild(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: server:", err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	b := &bench{out: os.Stdout, progress: os.Stderr, folder: os.TempDir()}
	only := flag.String("only", "", "run only the benchmark with this name")
	quick := flag.Bool("quick", false, "smaller counts: a minute instead of ten, and coarser figures")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the run to this file")
	flag.BoolVar(&b.peers, "peers", true, "measure the peers too")
	flag.BoolVar(&b.full, "full", false, "growth: up to ten million queued jobs")
	flag.StringVar(&b.axis, "axis", "", `growth: only where "store, thing" contains this text`)
	flag.StringVar(&b.write, "write", "", "write the comparison with the peers and its chart into this folder")
	flag.Parse()
	if *quick {
		b.size = quickly
	}
	stop, err := startProfile(*profile)
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return b.runAll(ctx, *only)
}

// runAll runs all benchmarks, or only the named one.
func (b *bench) runAll(ctx context.Context, only string) error {
	b.machine()
	found := false
	for _, m := range benchmarks {
		if only != "" && only != m.name {
			continue
		}
		found = true
		fmt.Fprintf(b.out, "\n# %s: %s\n\n", m.name, m.about)
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	switch {
	case !found:
		return fmt.Errorf("there is no benchmark %q", only)
	case b.missed:
		return errMissed
	}
	return nil
}

func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: profile:", err)
		}
	}, nil
}
