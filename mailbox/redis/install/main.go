// Command install makes sure that there is a Redis for the tests, and prints its program. Where it can, it installs
// Debian's package.
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
