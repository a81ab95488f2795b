//go:build linux || darwin

package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lessor/client"
	"lessor/internal/store/sqlite"
)

// TestLostDatabaseEndsTheNode removes the database under a node, and its log under another, with and without calls.
// After a second the node acknowledges nothing, and it ends with the cause.
func TestLostDatabaseEndsTheNode(t *testing.T) {
	for _, file := range []string{"lessor.db", "lessor.db-wal"} {
		for _, busy := range []bool{true, false} {
			cfg := testConfig(t)
			n, err := open(t.Context(), cfg.settings(), nil, sqlite.Config{Synchronous: "OFF"})
			if err != nil {
				t.Fatal(err)
			}
			ln, http := Pipe()
			done := make(chan error, 1)
			go func() { done <- n.Serve(context.Background(), ln) }()
			c, err := client.New(client.Config{Server: "http://127.0.0.1", HTTP: http})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Submit(t.Context(), "hello", nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(cfg.Data, file)); err != nil {
				t.Fatal(err)
			}
			for gone := time.Now(); busy; {
				_, err := c.Submit(t.Context(), "hello", nil, nil)
				if late := time.Since(gone); err == nil && late > time.Second {
					t.Errorf("a job was acknowledged %[2]v after %[1]s was removed, want at most a second", file, late)
				}
				busy = err == nil
			}
			select {
			case err = <-done:
			case <-time.After(60 * time.Second):
				t.Fatalf("%s was removed a minute ago, and the node still serves", file)
			}
			// The cause is "was removed", or "was replaced" if a connection of a reader has created the file again.
			if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), file+" was re") {
				t.Errorf("Serve returned %v, want ErrBroken that says that %s was removed or replaced", err, file)
			}
			http.CloseIdleConnections()
			if err := n.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	}
}
