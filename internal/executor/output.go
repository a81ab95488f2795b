package executor

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"lessor"
)

// output keeps what a command writes: up to a cap in a file, and the last of it in memory. Writing to it never fails,
// since a command must not be stopped by a full disk or a reached cap. One goroutine writes, and reads when that has
// ended.
type output struct {
	seen func()      // called at each write: the command moves
	warn func(error) // called when writing to the file begins to fail

	file   *os.File // nil if there is none
	left   int64    // bytes until the cap
	cut    bool     // the cap was reached, and the file says so
	failed bool     // the last write to the file failed
	tail   []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.seen()
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - lessor.MaxErrorText; over > 0 {
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	if o.file == nil || o.cut {
		return len(p), nil
	}
	keep := p[:min(int64(len(p)), o.left)]
	n, err := o.file.Write(keep)
	o.left -= int64(n)
	if err == nil && len(keep) < len(p) {
		_, err = fmt.Fprintln(o.file, "\n[the rest of the output was not kept]")
		o.cut = true
	}
	if err != nil && !o.failed {
		o.warn(err)
	}
	o.failed = err != nil
	return len(p), nil
}

// last returns the end of what was written, as a text of at most limit bytes that a server takes.
func (o *output) last(limit int) string {
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
