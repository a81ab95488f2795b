// Command install ensures that there is a PostgreSQL for the tests, installs Debian's package if it must and can, and
// prints the folder of its programs.
package main

import (
	"context"
	"fmt"
	"os"

	"lessor/internal/pgtest"
)

func main() {
	if url := os.Getenv(pgtest.Environment); url != "" {
		fmt.Fprintln(os.Stdout, "tests use the server named by "+pgtest.Environment)
		return
	}
	bin, err := pgtest.Install(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, bin)
}
