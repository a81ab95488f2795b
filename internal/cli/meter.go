package cli

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
)

// isTerminal reports whether f is a terminal.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(file.Fd())
}

const (
	// barEvery is how often a bar is drawn: as fast as a person reads. lineEvery is for logs.
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	// barWidth is the length of a bar in characters; with its numbers it fits on a line.
	barWidth = 30
)

// meter shows the progress of a long command on standard error: on a terminal a bar, which it erases at the end, and
// otherwise a line every ten seconds.
type meter struct {
	to   io.Writer
	bar  bool
	text func(done, total int64) string

	mu    sync.Mutex
	shown time.Time
	over  bool
}

func (a *app) meter(text func(done, total int64) string) *meter {
	m := &meter{to: a.Err, bar: isTerminal(a.Err), text: text}
	if !m.bar {
		m.shown = time.Now() // a command that takes less than lineEvery prints no line
	}
	return m
}

func jobsDone(done, total int64) string { return fmt.Sprintf("%d of %d jobs", done, total) }

// update shows the progress, if it is time to. A total of 0 is unknown. Several goroutines may call it.
func (m *meter) update(done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	switch {
	case m.over:
	case total > 0 && done >= total:
		m.erase()
	case m.bar && now.Sub(m.shown) >= barEvery:
		m.shown = now
		full := 0
		if total > 0 {
			full = int(done * barWidth / total)
		}
		bar := strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
		fmt.Fprintf(m.to, "\r%s %s\x1b[K\r", bar, m.text(done, total))
	case !m.bar && now.Sub(m.shown) >= lineEvery:
		m.shown = now
		fmt.Fprintln(m.to, "lessor: "+m.text(done, total))
	}
}

// above prints a line where the bar is, which is drawn again below it.
func (m *meter) above(line func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bar {
		fmt.Fprint(m.to, "\r\x1b[K")
	}
	line()
}

// end erases the bar, also if the command failed.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.erase()
}

func (m *meter) erase() {
	if m.bar && !m.over {
		fmt.Fprint(m.to, "\r\x1b[K")
	}
	m.over = true
}

// copied counts the bytes of a copied store and updates a meter.
type copied struct {
	*meter
	head  []byte
	bytes int64
}

func (c *copied) Write(p []byte) (int, error) {
	if n := sizedBy - len(c.head); n > 0 {
		c.head = append(c.head, p[:min(n, len(p))]...)
	}
	c.bytes += int64(len(p))
	c.update(c.bytes, storeSize(c.head))
	return len(p), nil
}

func mebibytes(done, total int64) string {
	text := fmt.Sprintf("%.1f", float64(done)/(1<<20))
	if total > 0 {
		text += fmt.Sprintf(" of %.1f", float64(total)/(1<<20))
	}
	return text + " MiB copied"
}

// sizedBy is the number of bytes at the start of a SQLite file that contain its size.
const sizedBy = 32

// storeSize returns the size of a SQLite file from its first bytes: page size (1 = 65536) times pages. It returns 0 if
// there are too few bytes.
func storeSize(head []byte) int64 {
	if len(head) < sizedBy {
		return 0
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	return page * int64(binary.BigEndian.Uint32(head[28:]))
}
