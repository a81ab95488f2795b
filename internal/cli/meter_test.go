package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor/internal/store/sqlite"
)

func TestBarShowsHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := &meter{to: &out, bar: true, text: jobsDone}
		m.update(0, 100)
		m.update(1, 100) // too soon to be drawn
		time.Sleep(barEvery)
		m.update(50, 100)
		half := strings.Repeat("█", 15) + strings.Repeat("░", 15) + " 50 of 100 jobs"
		if got := out.String(); strings.Contains(got, " 1 of 100") || !strings.Contains(got, half) {
			t.Errorf("shown: %q", got)
		}
		m.update(100, 100)
		gone := out.Len()
		m.update(99, 100) // from a late caller
		m.end()
		if got := out.String(); !strings.HasSuffix(got, "\r\x1b[K") || out.Len() != gone {
			t.Errorf("at the end the bar is left: %q", got)
		}
	})
}

func TestLogGetsALineNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := (&app{IO: IO{Err: &out}}).meter(jobsDone)
		for i := range int64(250) { // 25 seconds
			m.update(i, 250)
			time.Sleep(100 * time.Millisecond)
		}
		m.update(250, 250)
		m.end()
		if got := out.String(); got != "lessor: 100 of 250 jobs\nlessor: 200 of 250 jobs\n" {
			t.Errorf("logged: %q", got)
		}
	})
}

// TestCopyShowsItsSize reads the head of a real store in small pieces.
func TestCopyShowsItsSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var last, whole int64
	c := &copied{meter: &meter{to: &bytes.Buffer{}, bar: true, text: func(done, total int64) string {
		last, whole = done, total
		return ""
	}}}
	for piece := data[:len(data)-1]; len(piece) > 0; piece = piece[min(10, len(piece)):] {
		c.shown = time.Time{}
		if _, err := c.Write(piece[:min(10, len(piece))]); err != nil {
			t.Fatal(err)
		}
	}
	if want := int64(len(data)); last != want-1 || whole != want {
		t.Errorf("%d of %d bytes, want %d of %d", last, whole, want-1, want)
	}
	if got, want := mebibytes(3<<19, 3<<20), "1.5 of 3.0 MiB copied"; got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
}
