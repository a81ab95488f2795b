package chaos

import (
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lessor"
)

var flipsFlag = flag.Int("flips", 16, "how many bits of the files of a database are turned, one at a time")

// TestDamagedFilesLoseNothingInSilence turns single bits of the files that a killed server left. With a damaged log the
// server refuses to start, or has every job as it was. A database file has no checksums: there the server must at least
// neither panic nor hang.
func TestDamagedFilesLoseNothingInSilence(t *testing.T) {
	t.Parallel()
	s := start(t, loadSettings()...)
	l := startLoad(t, s)
	l.more(100)
	l.stop() // before the kill: a change that nobody was told of may be lost in silence
	s.kill()
	want, err := statesAfter(t, s, nil)
	must(t, err)
	refused, silent := 0, 0
	for n := range *flipsFlag {
		file := []string{"lessor.db-wal", "lessor.db"}[n%2]
		got, err := statesAfter(t, s, func(folder string) { flip(t, filepath.Join(folder, file)) })
		switch {
		case err != nil:
			refused++
		case maps.Equal(got, want):
		case file == "lessor.db-wal":
			t.Errorf("a server with a damaged log has %d jobs instead of %d, or in other states, and says nothing",
				len(got), len(want))
		default:
			silent++
		}
	}
	t.Logf("%d bits turned: %d times the server refused, %d times a damaged database file was not noticed", *flipsFlag,
		refused, silent)
}

// statesAfter starts a server on a damaged copy of a folder, and returns the states of all jobs by their keys. An error
// is a server that does not start or does not answer.
func statesAfter(t *testing.T, from *server, damage func(folder string)) (map[string]lessor.State, error) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "data")
	command(t, ".", "cp", "-a", from.data, folder)
	must(t, os.RemoveAll(filepath.Join(folder, "stderr")))
	if damage != nil {
		damage(folder)
	}
	s := &server{t: t, data: folder, env: append(loadSettings(), "LESSOR_LEASE_TTL=1h"), addr: "127.0.0.1:0"}
	defer s.checkLog()
	defer s.kill()
	late := time.AfterFunc(20*time.Second, func() { t.Error("a server on damaged files hangs") })
	defer late.Stop()
	if err := s.try(); err != nil {
		return nil, err
	}
	jobs, _, err := list(t.Context(), s.client())
	states := map[string]lessor.State{}
	for key, j := range jobs {
		states[key] = j.State
	}
	return states, err
}

// flip turns one bit of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	raw[rand.IntN(len(raw))] ^= 1 << rand.IntN(8)
	must(t, os.WriteFile(path, raw, 0o600))
}
