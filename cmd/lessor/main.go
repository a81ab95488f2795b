// Command lessor is the scheduler and the tool to look at it and steer it.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"lessor/internal/cli"
)

// What lives in a server is small beside what it makes and drops a second, so the collector may let the heap grow to five times of
// it instead of twice: it was a third of the CPU. The limit bounds that where much lives. GOGC or GOMEMLIMIT overrule both.
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
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(),
	}))
}
