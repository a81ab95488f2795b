// Command lessor is the scheduler and the tool to look at it and steer it.
package main

import (
	"context"
	"os"

	"lessor/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(),
	}))
}
