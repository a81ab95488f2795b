// Command lessor is the scheduler, and the client that shows and controls it.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"lessor/internal/cli"
)

// Garbage collection runs at GOGC=400: a server has little live memory and allocates much, and at the default of 100
// the collector took a third of the CPU. The memory limit makes it run more often when there is much live memory. GOGC
// or GOMEMLIMIT in the environment override both.
const (
	gcPercent   = 400
	memoryLimit = 2 << 30
)

func main() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(gcPercent)
		debug.SetMemoryLimit(memoryLimit)
	}
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Program: os.Args[0],
	}))
}
