// Command install makes sure that there is a Redis for the tests, installing Debian's package where that is possible, and
// prints its program.
package main

import (
	"context"
	"fmt"
	"os"

	"lessor/mailbox/redis/internal/redistest"
)

func main() {
	if url := os.Getenv(redistest.Environment); url != "" {
		fmt.Fprintln(os.Stdout, "tests use the server named by "+redistest.Environment)
		return
	}
	program, err := redistest.Install(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "redistest:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, program)
}
