package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"zombiezen.com/go/sqlite"
)

// commitsSetting holds how many commits there were when the generation was stored last.
const commitsSetting = "sqlite.commits"

// checkMark refuses a database that holds less than was acknowledged, and returns the content of the mark. No process
// has the files open. It changes nothing, so that the right files can still be put back.
func checkMark(path string) (marked, error) {
	c, err := readMark(path)
	if err != nil {
		return c, err
	}
	missing, err := findLoss(path, c)
	if err == nil && missing != "" {
		err = fmt.Errorf("acknowledged changes are missing: %s. Put the right files back, or accept the loss: "+
			"lessor doctor --accept-loss %s", missing, path)
	}
	return c, err
}

// findLoss describes what is missing of what was marked. It returns "" if nothing is.
func findLoss(path string, c marked) (missing string, err error) {
	if err := checkCopy(path); err != nil || c == (marked{}) {
		return "", err
	}
	if c.numbered {
		has, err := commitsIn(path)
		if err != nil || has >= c.commits {
			return "", err
		}
		return fmt.Sprintf("the last commit found is number %d, and %s says %d. The write-ahead log (%s) was removed"+
			" or damaged, or the database is an older copy", has, path+markSuffix, c.commits, path+walSuffix), nil
	}
	has, err := headerWord(path, userVersion)
	if err != nil {
		return "", err
	}
	need, state := c.base, logWhole
	if !c.closed() {
		if state, err = compareLog(path+walSuffix, c.at); err != nil {
			return "", fmt.Errorf("compare the write-ahead log with the mark: %w", err)
		}
	}
	switch state {
	case logMissing:
		return fmt.Sprintf("the write-ahead log (%s) was removed or emptied. If another program (such as sqlite3)"+
			" has opened the database since the server ended, it may have moved the log into the database, and"+
			" nothing is lost",
			path+walSuffix), nil
	case logDamaged:
		return fmt.Sprintf("the write-ahead log (%s) is damaged, or it is another one", path+walSuffix), nil
	case logRestarted: // what the mark covers is in the database file
		need = c.generation
	case logWhole:
	}
	if has < int64(need) {
		return fmt.Sprintf("the database is an older copy: its generation is %d, and %s says %d",
			max(has, 0), path+markSuffix, need), nil
	}
	return "", nil
}

// The places of two words in the first page of a database file.
const (
	userVersion   = 60
	applicationID = 68
)

// headerWord reads a word in the first page of a database file, whatever its log says. It returns -1 for a file that is
// empty or no database.
func headerWord(path string, at int) (word int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var head [100]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return -1, unless(unless(err, io.ErrUnexpectedEOF), io.EOF)
	}
	return int64(binary.BigEndian.Uint32(head[at:])), nil
}

// commitsIn reads the stored number of commits in a database file that no process has open. A read-only connection
// neither copies the WAL back nor removes it, except beside an empty database, which therefore is not opened.
func commitsIn(path string) (commits int64, err error) {
	if st, err := os.Stat(path); err != nil || st.Size() == 0 {
		return 0, err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return 0, fault("read the number of commits", err)
	}
	defer func() { err = errors.Join(err, fault("read the number of commits", conn.Close())) }()
	known, err := count(conn, "select count(*) from sqlite_master where name = 'setting'")
	if err != nil || known == 0 {
		return 0, fault("read the number of commits", err)
	}
	return readCommits(conn)
}

func readCommits(conn *sqlite.Conn) (commits int64, err error) {
	err = query(conn, "select value from setting where name = ?",
		func(a *args) { a.Text(commitsSetting) },
		func(r *result) error {
			commits, err = strconv.ParseInt(string(r.Bytes()), 10, 64)
			return err
		})
	return commits, fault("read the number of commits", err)
}

// AcceptLoss lets a database be opened that holds less than was acknowledged. It returns how many commits are given up
// at most. It refuses a database that a server has open.
func AcceptLoss(_ context.Context, path string) (lost int64, err error) {
	if path, err = prepareFile(path); err != nil {
		return 0, err
	}
	o, err := lockDatabase(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, o.release()) }()
	c, err := readMark(path)
	if err != nil {
		return 0, err
	}
	missing, err := findLoss(path, c)
	if err != nil {
		return 0, err
	}
	if missing != "" {
		has, err := commitsIn(path)
		if err != nil {
			return 0, err
		}
		lost = max(1, c.commits-has)
	}
	if err := os.Remove(path + markSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return lost, nil
}
