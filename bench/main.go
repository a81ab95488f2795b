// Bench measures Lessor on this machine, and beside it the peers that run in the same process. Each benchmark prints a
// table, says with which settings it was made, and holds the figures that the project promises to their bounds: the exit
// code is 1 when one is missed.
//
//	go run . [-only NAME] [-quick] [-peers=false] [-cpuprofile FILE]
//
// It writes to temporary folders that it removes, listens on the loopback address alone, and ends by itself. What each
// benchmark measures, and what is fair about it and what is not, stands in docs/benchmarks.md.
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

// longest bounds a whole run: three times what it takes on two cores.
const longest = 20 * time.Minute

// benchmarks are run in this order.
var benchmarks = []struct {
	name, about string
	run         func(context.Context, *bench) error
}{
	{"lifecycle", "submit, grant, first heartbeat, complete; beside River on SQLite", lifecycle},
	{"beats", "heartbeats of 64 callers against one alone: group commit", beats},
	{"grants", "a grant from a million queued jobs against one from a thousand", grants},
	{"postgres", "the same life on PostgreSQL, one node and two; beside River on the same server", postgres},
	{"heldopen", "the same life while somebody holds a transaction open", heldOpen},
	{"due", "finding the due ones of 100,000 definitions against 1,000", due},
	{"latency", "from submission to start over HTTP, workers waiting", latency},
}

// gcPercent is the setting of cmd/lessor, here for all sides.
const gcPercent = 400

var errMissed = errors.New("a bound was missed")

func main() {
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
	only := flag.String("only", "", "run the benchmark of this name alone")
	quick := flag.Bool("quick", false, "smaller counts: a minute instead of ten, and coarser figures")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the run to this file")
	flag.BoolVar(&b.peers, "peers", true, "measure the peers too")
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

// runAll runs the benchmarks, or the one that is named.
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
