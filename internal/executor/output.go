package executor

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"lessor"
	"lessor/internal/printer"
)

// output keeps the end of what a command writes: up to a limit in a file, and less in memory. Writing to it never
// fails, because neither a full disk nor the limit may stop a command. One goroutine writes, while a printer reads what
// is in the file.
type output struct {
	seen func()      // called at each write: the command moves
	warn func(error) // called when writing to the file begins to fail

	mu     sync.Mutex
	file   *os.File // nil if there is none
	limit  int64    // bytes of the file
	size   int64    // bytes in the file
	total  int64    // bytes of the stream: those that came into the file, or passed through it
	first  int64    // of the stream, those from here on are in the file, up to its end
	failed bool     // the last write to the file failed
	tail   []byte
}

var _ printer.Stream = (*output)(nil)

func (o *output) Write(p []byte) (int, error) {
	o.seen()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - lessor.MaxErrorText; over > 0 {
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	if o.file == nil {
		return len(p), nil
	}
	err := o.keep(p)
	if err != nil && !o.failed {
		o.warn(err)
	}
	o.failed = err != nil
	return len(p), nil
}

// keep adds p to the file. A file that would exceed its limit loses its older half first.
func (o *output) keep(p []byte) error {
	kept := max(0, o.limit/2-int64(len(cutMark)))
	over := int64(len(p)) - o.limit/2
	if over > 0 {
		p, kept = p[over:], 0
	}
	if over > 0 || o.size+int64(len(p)) > o.limit {
		if err := o.trim(kept); err != nil {
			o.first = o.total // what is in the file is not certain
			return err
		}
		o.total += max(0, over)
		o.first = o.total - min(kept, o.total)
	}
	n, err := o.file.WriteAt(p, o.size)
	o.size += int64(n)
	o.total += int64(n)
	return err
}

// Size implements printer.Stream.
func (o *output) Size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// Read implements printer.Stream.
func (o *output) Read(offset int64, p []byte) (int64, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	start := max(offset, o.first)
	if o.file == nil || start >= o.total {
		return start, 0
	}
	n, _ := o.file.ReadAt(p[:min(int64(len(p)), o.total-start)], o.size-(o.total-start)) // the printer asks again
	return start, n
}

// Sent implements printer.Stream. The file is kept for people.
func (*output) Sent(int64) {}

// cutMark is the first line of a file that has lost its beginning.
const cutMark = "[the beginning of the output was not kept]\n"

// trim moves the last bytes of the file to its beginning, below cutMark, and drops the rest. It needs no more space on
// the disk. What it keeps must begin behind the place of cutMark.
func (o *output) trim(kept int64) error {
	from, to := io.NewSectionReader(o.file, o.size-kept, kept), io.NewOffsetWriter(o.file, 0)
	if _, err := io.WriteString(to, cutMark); err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	if err != nil {
		return err
	}
	o.size = int64(len(cutMark)) + n
	return o.file.Truncate(o.size)
}

// last returns the end of what was written, as a text of at most limit bytes that a server takes.
func (o *output) last(limit int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return cutText(string(o.tail), limit)
}

// cutText returns the end of s as valid text of at most limit bytes, without the bytes that no text has.
func cutText(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	for len(s) > limit {
		s = s[len(s)-limit:]
		s = strings.ToValidUTF8(s, "")
	}
	return s
}
