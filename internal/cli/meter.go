package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
)

// isTerminal reports whether a person is at the other end.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(file.Fd())
}

// meterEvery is how often a meter moves: as fast as one reads.
const meterEvery = 200 * time.Millisecond

// progress counts bytes on standard error, if a person looks at it.
func (a *app) progress(verb string) io.Writer {
	if !isTerminal(a.Err) {
		return io.Discard
	}
	return &meter{to: a.Err, verb: verb}
}

type meter struct {
	to    io.Writer
	verb  string
	bytes int64
	shown time.Time
}

func (m *meter) Write(p []byte) (int, error) {
	m.bytes += int64(len(p))
	if now := time.Now(); now.Sub(m.shown) >= meterEvery {
		m.shown = now
		fmt.Fprintf(m.to, "\r%s %.1f MiB\x1b[K\r", m.verb, float64(m.bytes)/(1<<20))
	}
	return len(p), nil
}

// barWidth is the length of a bar in characters; with its figures it fits a line.
const barWidth = 30

// bar shows on standard error how many of total are done, if a person looks at it, and goes away when all are. The function it returns
// may be called by many at once.
func (a *app) bar(noun string, total int64) func(done int64) {
	if !isTerminal(a.Err) {
		return func(int64) {}
	}
	return bar(a.Err, noun, total)
}

func bar(to io.Writer, noun string, total int64) func(done int64) {
	var mu sync.Mutex
	var shown time.Time
	over := false
	return func(done int64) {
		mu.Lock()
		defer mu.Unlock()
		if over = over || done >= total; over {
			fmt.Fprint(to, "\r\x1b[K")
		} else if now := time.Now(); now.Sub(shown) >= meterEvery {
			shown = now
			full := int(done * barWidth / total)
			fmt.Fprintf(to, "\r%s%s %d of %d %s\x1b[K\r", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), done, total, noun)
		}
	}
}
