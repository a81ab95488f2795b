//go:build linux || darwin

package sqlite

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"lessor/internal/scheduler"
)

// checkOpens fails the test unless the database opens, twice, and has the settings 0 to n-1.
func checkOpens(t *testing.T, name, path string, n int) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path, Synchronous: "OFF"})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for i := range n {
		inView(t, s, func(v scheduler.View) error {
			value, err := v.Setting(t.Context(), fmt.Sprint("n", i))
			if err == nil && value == nil {
				t.Errorf("%s: setting %d is missing", name, i)
			}
			return err
		})
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: close: %v", name, err)
	}
	again, err := Open(t.Context(), Config{Path: path, Synchronous: "OFF"})
	if err != nil {
		t.Errorf("%s, second start: %v", name, err)
		return
	}
	if err := again.Close(); err != nil {
		t.Errorf("%s, second start: close: %v", name, err)
	}
}

// checkpointStore copies the log into the database, as the writer does when the log is long. The next commit starts the
// log anew.
func checkpointStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.leave()
	if folded, err := checkpoint(s.writer.conn); err != nil || !folded {
		t.Fatalf("checkpoint: %v, %v; want true and no error", folded, err)
	}
}

// commitSettings saves the settings from <= n < to, each in a commit of its own.
func commitSettings(t *testing.T, s *Store, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := commitSetting(t, s, n); err != nil {
			t.Fatal(err)
		}
	}
}

// removeLog removes the log of a database, and returns the path that it was given.
func removeLog(t *testing.T, path string) string {
	t.Helper()
	if err := os.Remove(path + walSuffix); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return path
}

// TestKillWhileClosingLosesNothing kills a store after each step of Close. After each kill the database opens
// with everything in it. Without its log it is refused, until the mark is closed.
func TestKillWhileClosingLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	s := openAt(t, Config{Path: path})
	commitSettings(t, s, 0, 3)
	for _, step := range []struct {
		name   string
		run    func() error
		closed bool
	}{
		{"running", func() error { return nil }, false},
		{"generation stored", s.nextGeneration, false},
		{"log moved", func() error { _, err := checkpoint(s.writer.conn); return err }, false},
		{"mark closed", func() error { return s.mark.closeAt(s.generation, s.commits) }, true},
		{"all closed", s.Close, true},
	} {
		if err := step.run(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		checkOpens(t, step.name, killedCopy(t, path), 3)
		if without := removeLog(t, killedCopy(t, path)); step.closed {
			checkOpens(t, step.name+", no log", without, 3)
		} else {
			checkRefused(t, step.name+", no log", without)
		}
	}
	if c, err := readMark(path); err != nil || !c.closed() {
		t.Errorf("the mark after Close: %+v, %v; want a closed mark", c, err)
	}
}

// TestKillWhileOpeningLosesNothing kills a store after each step of a start that follows a kill.
func TestKillWhileOpeningLosesNothing(t *testing.T) {
	first := openAt(t, Config{})
	commitSettings(t, first, 0, 3)
	path := killedCopy(t, first.path)
	c, err := checkMark(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{path: path}
	held, err := s.holdLog(c, "FULL")
	if err != nil {
		t.Fatal(err)
	}
	checkOpens(t, "log held", killedCopy(t, path), 3)
	checkOpens(t, "log held, no log", removeLog(t, killedCopy(t, path)), 3)
	if _, err := migrate(t.Context(), path, "OFF"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + walSuffix); err != nil {
		t.Errorf("the log was removed while it was held: %v", err)
	}
	checkOpens(t, "migrated", killedCopy(t, path), 3)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	checkOpens(t, "released", killedCopy(t, path), 3)
	if err := s.closeMark(); err != nil {
		t.Fatal(err)
	}
	later := openAt(t, Config{Path: path})
	if later.commits != first.commits+1 {
		t.Errorf("%d commits after the start, want one more than %d", later.commits, first.commits)
	}
	if err := later.nextGeneration(); err != nil { // a commit, and a kill before the mark is written
		t.Fatal(err)
	}
	checkOpens(t, "first commit", killedCopy(t, path), 3)
}

// TestKillAfterTheLogRestartedLosesNothing kills a store between the first write into a log that starts anew
// and the next mark.
func TestKillAfterTheLogRestartedLosesNothing(t *testing.T) {
	s := openAt(t, Config{})
	commitSettings(t, s, 0, 3)
	older := killedCopy(t, s.path) // its database file is from before the checkpoint
	checkpointStore(t, s)
	before := killedCopy(t, s.path)
	checkOpens(t, "after the checkpoint", killedCopy(t, before), 3)
	checkRefused(t, "after the checkpoint, no log", removeLog(t, killedCopy(t, before)))
	was := s.at
	commitSettings(t, s, 3, 4)
	if restarts(was.salts, s.at.salts) != 1 {
		t.Fatalf("the log did not start anew: %x, then %x", was.salts, s.at.salts)
	}
	after := killedCopy(t, s.path)
	checkOpens(t, "after the restart", killedCopy(t, after), 4)
	checkRefused(t, "after the restart, no log", removeLog(t, killedCopy(t, after)))

	unmarked := killedCopy(t, after) // the kill came after the commit and before its mark
	copyFile(t, before+markSuffix, unmarked+markSuffix)
	checkOpens(t, "restarted, not marked", killedCopy(t, unmarked), 4)
	checkRefused(t, "restarted, not marked, no log", removeLog(t, killedCopy(t, unmarked)))

	headed := killedCopy(t, before) // only the header of the new log was written
	log, err := os.ReadFile(after + walSuffix)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, headed+walSuffix, 0, log[:logHeaderBytes])
	checkOpens(t, "only the header", killedCopy(t, headed), 3)
	flipped := killedCopy(t, headed)
	overwrite(t, flipped+walSuffix, 20, []byte{log[20] ^ 1})
	checkRefused(t, "the header, damaged", flipped)

	for name, files := range map[string]string{"restarted": after, "not marked": unmarked, "only the header": headed} {
		old := killedCopy(t, files)
		copyFile(t, older, old)
		checkRefused(t, "an older database under the log, "+name, old)
	}
	commitSettings(t, s, 4, 6)
	checkpointStore(t, s)
	commitSettings(t, s, 6, 7)
	behind := killedCopy(t, s.path) // as after a power failure that kept the mark of an older log
	copyFile(t, before+markSuffix, behind+markSuffix)
	checkOpens(t, "two logs later", behind, 7)
	old := killedCopy(t, s.path)
	copyFile(t, before+walSuffix, old+walSuffix)
	checkRefused(t, "the log before this one", old)
	old = killedCopy(t, s.path)
	copyFile(t, before, old)
	checkRefused(t, "a database of the log before", old)
}

// TestOlderCopyOfTheSameRunIsRefused: a copy of the database file that was made while the server ran is not taken
// for the file that the server closed.
func TestOlderCopyOfTheSameRunIsRefused(t *testing.T) {
	s := openAt(t, Config{})
	commitSettings(t, s, 0, 3)
	checkpointStore(t, s)
	older := killedCopy(t, s.path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyFile(t, older, s.path)
	checkRefused(t, "a copy from before Close", s.path)
}

// overwrite writes b into a file at an offset.
func overwrite(t *testing.T, name string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, at)
	if e := f.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
}

// TestLogMovedByAForeignProgramIsNotLost: another program opens the database of a killed server and closes it,
// which moves the log into the database and removes it. The store cannot tell this from a lost log. Its refusal says
// so, and nothing is missing after the loss was accepted.
func TestLogMovedByAForeignProgramIsNotLost(t *testing.T) {
	s := openAt(t, Config{})
	commitSettings(t, s, 0, 3)
	path := killedCopy(t, s.path)
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(conn, "select count(*) from setting", nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + walSuffix); !os.IsNotExist(err) {
		t.Fatalf("the log after the other program closed the database: %v, want that it does not exist", err)
	}
	checkRefused(t, "the log was moved", path)
	if _, err := checkMark(path); err == nil || !strings.Contains(err.Error(), "sqlite3") {
		t.Errorf("got the error %v, want one that names sqlite3", err)
	}
	if lost, err := AcceptLoss(t.Context(), path); err != nil || lost < 1 {
		t.Fatalf("accepted: %d commits, %v; want at least 1", lost, err)
	}
	checkOpens(t, "accepted", path, 3)
}

// TestForeignReaderKeepsTheLog: while a program reads an older state, the store cannot move the log at Close, and the
// mark stays open.
func TestForeignReaderKeepsTheLog(t *testing.T) {
	s := openAt(t, Config{})
	commitSettings(t, s, 0, 2)
	reader, err := sqlite.OpenConn(s.path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"begin", "select count(*) from setting"} {
		if err := sqlitex.ExecuteTransient(reader, text, nil); err != nil {
			t.Fatal(err)
		}
	}
	commitSettings(t, s, 2, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkOpens(t, "closed beside a reader", killedCopy(t, s.path), 3)
	checkRefused(t, "closed beside a reader, no log", removeLog(t, killedCopy(t, s.path)))
	if err := sqlitex.ExecuteTransient(reader, "rollback", nil); err != nil {
		t.Fatal(err)
	}
	// The reader is idle now: SQLite does not remove the log, but moves it into the database.
	again := openAt(t, Config{Path: s.path})
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.path + walSuffix); err != nil {
		t.Fatal(err)
	}
	checkOpens(t, "closed beside an idle reader, no log", removeLog(t, killedCopy(t, s.path)), 3)
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	checkOpens(t, "the reader has closed", s.path, 3)
}

// TestMarkOfTheReleaseBeforeIsReplaced: a mark that has only the number of commits is checked at the first start,
// and replaced.
func TestMarkOfTheReleaseBeforeIsReplaced(t *testing.T) {
	s := openAt(t, Config{})
	commitSettings(t, s, 0, 3)
	path := killedCopy(t, s.path)
	has, err := commitsIn(path)
	if err != nil {
		t.Fatal(err)
	}
	setMark := func(path string, n int64) string {
		line := appendSum(fmt.Appendf(nil, "lessor 1 %020d", n))
		if err := os.WriteFile(path+markSuffix, line, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	checkRefused(t, "one commit more than there is", setMark(killedCopy(t, path), has+1))
	upgraded := setMark(killedCopy(t, path), has)
	later := openAt(t, Config{Path: upgraded})
	checkOpens(t, "upgraded", killedCopy(t, upgraded), 3)
	checkRefused(t, "upgraded, no log", removeLog(t, killedCopy(t, upgraded)))
	if c, err := readMark(upgraded); err != nil || c.numbered || c.at != later.at {
		t.Errorf("the mark after the upgrade: %+v, %v; want the position %+v", c, err, later.at)
	}
	longer := killedCopy(t, path) // after a downgrade, the release before writes its line over the longer one
	overwrite(t, longer+markSuffix, 0, appendSum(fmt.Appendf(nil, "lessor 1 %020d", has+1)))
	checkRefused(t, "one commit more, after a downgrade", longer)
	damagedMark := killedCopy(t, path)
	overwrite(t, damagedMark+markSuffix, 20, []byte("x"))
	checkOpens(t, "a damaged mark", removeLog(t, damagedMark), 0)
}

// TestLogOfTheOtherByteOrderIsRead: a log whose checksums have the byte order of another machine is accepted.
func TestLogOfTheOtherByteOrderIsRead(t *testing.T) {
	s := openAt(t, Config{})
	commitSettings(t, s, 0, 3)
	path := killedCopy(t, s.path)
	log, err := os.ReadFile(path + walSuffix)
	if err != nil {
		t.Fatal(err)
	}
	log[3] ^= 1 // the last bit of the magic number is the byte order
	order, pageBytes := logFormat(log)
	sum := addSum(order, 0, log[:24])
	binary.BigEndian.PutUint64(log[24:], sum)
	frame := log[logHeaderBytes:]
	for range s.at.frame {
		sum = addSum(order, addSum(order, sum, frame[:8]), frame[frameHeaderBytes:frameHeaderBytes+pageBytes])
		binary.BigEndian.PutUint64(frame[16:], sum)
		frame = frame[frameHeaderBytes+pageBytes:]
	}
	if err := os.WriteFile(path+walSuffix, log, 0o600); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, "other checksums than the mark's", killedCopy(t, path))
	c, err := readMark(path)
	if err != nil {
		t.Fatal(err)
	}
	c.at.sum = sum
	if err := os.WriteFile(path+markSuffix, markLine(nil, c), 0o600); err != nil {
		t.Fatal(err)
	}
	checkOpens(t, "the other byte order", killedCopy(t, path), 3)
	overwrite(t, path+walSuffix, int64(len(log))-10, []byte{log[len(log)-10] ^ 1})
	checkRefused(t, "the other byte order, damaged", path)
}
