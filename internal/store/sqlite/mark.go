package sqlite

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strconv"

	"zombiezen.com/go/sqlite"
)

// commitsSetting holds the number of the last commit that changed something. It rises by one with each.
const commitsSetting = "sqlite.commits"

// markSuffix names the mark beside the database.
const markSuffix = "-mark"

// mark is a file beside the database that holds the number of the last acknowledged commit. SQLite recovers from a write-ahead log that
// is missing, or damaged in the middle, by forgetting commits in silence; a start compares the two numbers.
//
// It is written after each commit and before its callers are answered, so that it never claims what the database does not have. It is not
// synced until Close: a kill loses nothing of it, and after a power failure it may claim less.
type mark struct {
	file *os.File
	text []byte
}

func openMark(path string) (*mark, error) {
	f, err := os.OpenFile(path+markSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &mark{file: f}, nil
}

// markText is a line of one length: the number and its checksum.
func markText(b []byte, commits int64) []byte {
	b = append(b[:0], "lessor 1 00000000000000000000"...)
	for i := len(b) - 1; commits > 0; i, commits = i-1, commits/10 {
		b[i] = byte('0' + commits%10)
	}
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(b))
	return append(hex.AppendEncode(append(b, ' '), sum), '\n')
}

func (m *mark) write(commits int64) error {
	m.text = markText(m.text, commits)
	_, err := m.file.WriteAt(m.text, 0)
	return err
}

func (m *mark) close() error { return errors.Join(m.file.Sync(), m.file.Close()) }

// readMark returns the number in the mark. A mark that is missing, or that cannot be understood, claims nothing: it is 0.
func readMark(path string) (commits int64, err error) {
	text, err := os.ReadFile(path + markSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, _ = fmt.Sscanf(string(text), "lessor 1 %020d", &commits) // what is no number fails the comparison
	if string(markText(nil, commits)) != string(text) {
		return 0, nil
	}
	return commits, nil
}

// checkMark refuses a database that holds less than was acknowledged. It changes nothing, so that the right files can still be put back.
func checkMark(path string) error {
	marked, err := readMark(path)
	if err != nil || marked == 0 {
		return err
	}
	has, err := commitsIn(path)
	if err != nil || has >= marked {
		return err
	}
	return fmt.Errorf("acknowledged changes are missing: the last commit found is number %d, and %s says %d. The write-ahead log (%s) was removed or damaged,"+
		" or the database is an older copy. Put the right files back, or accept the loss: lessor doctor --accept-loss %s",
		has, path+markSuffix, marked, path+walSuffix, path)
}

// commitsIn reads the number of the last commit in a database file that nobody has open. A connection that only reads neither copies
// the WAL back nor removes it, except beside an empty database, which therefore is not opened.
func commitsIn(path string) (commits int64, err error) {
	if st, err := os.Stat(path); err != nil || st.Size() == 0 {
		return 0, err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return 0, fault("look at the last commit", err)
	}
	defer func() { err = errors.Join(err, fault("look at the last commit", conn.Close())) }()
	known, err := count(conn, "select count(*) from sqlite_master where name = 'setting'")
	if err != nil || known == 0 {
		return 0, fault("look at the last commit", err)
	}
	return readCommits(conn)
}

func readCommits(conn *sqlite.Conn) (commits int64, err error) {
	err = query(conn, "select value from setting where name = ?", func(a *args) { a.Text(commitsSetting) }, func(r *result) error {
		commits, err = strconv.ParseInt(string(r.Bytes()), 10, 64)
		return err
	})
	return commits, fault("read the last commit", err)
}

// AcceptLoss lets a database be opened that holds less than was acknowledged, and returns how many commits are given up. Nobody may have
// it open.
func AcceptLoss(_ context.Context, path string) (lost int64, err error) {
	if path, err = prepareFile(path); err != nil {
		return 0, err
	}
	o, err := own(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, o.release()) }()
	marked, err := readMark(path)
	if err != nil {
		return 0, err
	}
	has, err := commitsIn(path)
	if err != nil {
		return 0, err
	}
	if err := os.Remove(path + markSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return max(0, marked-has), nil
}
