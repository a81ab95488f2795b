package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FakeClock returns the library that can set a server's clock (Debian: faketime). Without it the test is skipped.
func FakeClock(t testing.TB) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the pattern is right
			return found[0]
		}
	}
	t.Skip("no libfaketime here: install it (Debian: apt-get install faketime)")
	return ""
}

// clockFile contains the offset of the server's clock from the machine's, or the time at which it stands still.
func (s *Server) clockFile() string { return filepath.Join(s.dir, "clock") }

// Step sets the clock of a server that was started with Options.FakeClock to the machine's plus d.
func (s *Server) Step(d time.Duration) error {
	return s.setClock(fmt.Sprintf("%+.3f", d.Seconds()))
}

// Freeze stops the clock of a server that was started with Options.FakeClock, until the next Step.
func (s *Server) Freeze() error { return s.setClock(time.Now().Format(time.DateTime)) }

func (s *Server) setClock(text string) error {
	next := s.clockFile() + ".next"
	err := os.WriteFile(next, []byte(text+"\n"), 0o644) //nolint:gosec // the server reads it as another user
	if err != nil {
		return err
	}
	return os.Rename(next, s.clockFile())
}

// clockEnv makes the server's processes read the wall clock through the library. The monotonic clock stays real.
func (s *Server) clockEnv() []string {
	return append(os.Environ(), "LD_PRELOAD="+s.options.FakeClock, "FAKETIME_TIMESTAMP_FILE="+s.clockFile(),
		"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
}
