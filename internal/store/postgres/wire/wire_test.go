package wire

import (
	"fmt"
	"os"
	"testing"
	"time"

	"lessor/internal/pgtest"
)

// pool is the server of these tests. They need no tables.
var pool = &pgtest.Pool{}

func TestMain(m *testing.M) { os.Exit(pool.Main(m)) }

var begin, commit = SQL("begin"), SQL("commit")

// dialer returns a dialer for a new database.
func dialer(t *testing.T) *Dialer {
	t.Helper()
	server, err := ParseServer(pool.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	return &Dialer{Server: server, Wait: time.Minute, Fault: func(verb string, err error) error {
		return fmt.Errorf("%s: %w", verb, err)
	}}
}
