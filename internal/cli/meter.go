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

// isTerminal reports whether a person is at the other end.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(file.Fd())
}

const (
	// barEvery is how often a bar moves: as fast as one reads. lineEvery is for logs.
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	// barWidth is the length of a bar in characters; with its figures it fits a line.
	barWidth = 30
)

// meter tells on standard error how far a long command is: a person by a bar, which goes away at the end, a log by a line now and then.
type meter struct {
	to     io.Writer
	person bool
	text   func(done, total int64) string

	mu    sync.Mutex
	shown time.Time
	over  bool
}

func (a *app) meter(text func(done, total int64) string) *meter {
	m := &meter{to: a.Err, person: isTerminal(a.Err), text: text}
	if !m.person {
		m.shown = time.Now() // what takes less than a line's time needs none
	}
	return m
}

func jobsDone(done, total int64) string { return fmt.Sprintf("%d of %d jobs", done, total) }

// tell may be called by many at once. A total of 0 is not known yet.
func (m *meter) tell(done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	switch {
	case m.over:
	case total > 0 && done >= total:
		m.erase()
	case m.person && now.Sub(m.shown) >= barEvery:
		m.shown = now
		full := 0
		if total > 0 {
			full = int(done * barWidth / total)
		}
		fmt.Fprintf(m.to, "\r%s%s %s\x1b[K\r", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), m.text(done, total))
	case !m.person && now.Sub(m.shown) >= lineEvery:
		m.shown = now
		fmt.Fprintln(m.to, "lessor: "+m.text(done, total))
	}
}

// end takes the bar away, also of a command that failed half-way.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.erase()
}

func (m *meter) erase() {
	if m.person && !m.over {
		fmt.Fprint(m.to, "\r\x1b[K")
	}
	m.over = true
}

// copied tells a meter how much of a store was copied.
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
	c.tell(c.bytes, storeSize(c.head))
	return len(p), nil
}

func mebibytes(done, total int64) string {
	text := fmt.Sprintf("%.1f", float64(done)/(1<<20))
	if total > 0 {
		text += fmt.Sprintf(" of %.1f", float64(total)/(1<<20))
	}
	return text + " MiB copied"
}

// sizedBy is how many bytes of a SQLite file tell its size.
const sizedBy = 32

// storeSize is the size of a SQLite file by its first bytes, 0 if there are not enough yet: page size (1 = 65536) times pages.
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
