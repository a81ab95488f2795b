package sqlite

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
)

// markSuffix names the mark beside the database.
const markSuffix = "-mark"

// marked is the content of a mark: what a start must find in the database and its log.
type marked struct {
	// generation is the number that the database must hold: in its file if the mark is closed, else in file or log.
	generation uint32
	// base is the generation of the database file beneath the log. An older copy of the file has a smaller one.
	base uint32
	// commits counts the commits of the database's life.
	commits int64
	// at is the end of the last acknowledged commit in the write-ahead log. It is zero in a closed mark, which says
	// that the database file holds everything.
	at position
	// numbered says that the mark is of the format before this one, which knows the number of commits and nothing
	// else.
	numbered bool
}

func (c marked) closed() bool { return c.at == position{} }

// mark is a file beside the database that says how much of it was acknowledged. SQLite forgets commits without an
// error if the write-ahead log is missing or damaged; a start compares the log with the mark.
//
// The mark is written after each commit has been synced and before its callers are answered, so it never covers a
// change that the database does not have. It is synced only at Close: a kill loses nothing of it, and after a power
// failure it may cover less.
type mark struct {
	marked
	file *os.File
	text []byte
}

// openMark opens the mark, whose content is c, or creates an empty one, so that later writes need no more space.
func openMark(path string, c marked) (*mark, error) {
	f, err := os.OpenFile(path+markSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	m := &mark{marked: c, file: f}
	st, err := f.Stat()
	if err == nil && st.Size() == 0 {
		err = m.write(marked{})
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

func (m *mark) write(c marked) error {
	m.text = markLine(m.text[:0], c)
	if _, err := m.file.WriteAt(m.text, 0); err != nil {
		return err
	}
	m.marked = c
	return nil
}

// advance writes that the commits up to c were acknowledged.
func (m *mark) advance(c *commit) error {
	base := m.base
	if m.at.salts != c.at.salts { // a new log: the database file holds all that the mark covers
		base = m.generation
	}
	return m.write(marked{generation: c.generation, base: base, commits: c.number, at: c.at})
}

// closeAt writes that the database file itself holds everything. The mark is synced, since the log may be removed
// next.
func (m *mark) closeAt(generation uint32, commits int64) error {
	if err := m.write(marked{generation: generation, base: generation, commits: commits}); err != nil {
		return err
	}
	return m.file.Sync()
}

// markLine appends the line of a mark. All lines have the same length: six words and their checksum.
func markLine(b []byte, c marked) []byte {
	b = append(b, "lessor 2"...)
	var word [8]byte
	for _, v := range [...]uint64{
		uint64(c.generation), uint64(c.base), uint64(c.commits), c.at.salts, uint64(c.at.frame), c.at.sum,
	} {
		binary.BigEndian.PutUint64(word[:], v)
		b = hex.AppendEncode(append(b, ' '), word[:])
	}
	return appendSum(b)
}

// appendSum ends a line with its checksum.
func appendSum(b []byte) []byte {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE(b))
	return append(hex.AppendEncode(append(b, ' '), sum[:]), '\n')
}

// readMark returns the content of the mark, which is empty if the mark is missing or damaged.
func readMark(path string) (c marked, err error) {
	text, err := os.ReadFile(path + markSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	line := text[:bytes.IndexByte(text, '\n')+1] // a shorter line may have overwritten a longer one
	// A line that cannot be parsed fails the comparison with the line that its values would have.
	_, _ = fmt.Sscanf(string(line), "lessor 2 %016x %016x %016x %016x %016x %016x",
		&c.generation, &c.base, &c.commits, &c.at.salts, &c.at.frame, &c.at.sum)
	if bytes.Equal(markLine(nil, c), line) {
		return c, nil
	}
	c = marked{numbered: true}
	_, _ = fmt.Sscanf(string(line), "lessor 1 %020d", &c.commits)
	if bytes.Equal(appendSum(fmt.Appendf(nil, "lessor 1 %020d", c.commits)), line) {
		return c, nil
	}
	return marked{}, nil
}
