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

// holds opens a database, and expects the first n settings of number in it.
func holds(t *testing.T, name, path string, n int) {
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
				t.Errorf("%s: change %d is missing", name, i)
			}
			return err
		})
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: close: %v", name, err)
	}
	again, err := Open(t.Context(), Config{Path: path, Synchronous: "OFF"})
	if err != nil {
		t.Errorf("%s, once more: %v", name, err)
		return
	}
	if err := again.Close(); err != nil {
		t.Errorf("%s, once more: close: %v", name, err)
	}
}

// fold runs a checkpoint as the writer does when the log is long: the next commit starts the log anew.
func fold(t *testing.T, s *Store) {
	t.Helper()
	if err := s.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.leave()
	if folded, err := checkpoint(s.writer.conn); err != nil || !folded {
		t.Fatalf("checkpoint: %v, %v", folded, err)
	}
}

func saved(t *testing.T, s *Store, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := number(t, s, n); err != nil {
			t.Fatal(err)
		}
	}
}

func removeLog(t *testing.T, path string) string {
	t.Helper()
	if err := os.Remove(path + walSuffix); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return path
}

// TestKillWhileClosing kills a store after each step of Close. Each time the database opens with everything in it;
// without its log it is refused until the mark is closed.
func TestKillWhileClosing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	s := openAt(t, Config{Path: path})
	saved(t, s, 0, 3)
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
		holds(t, step.name, crash(t, path), 3)
		if without := removeLog(t, crash(t, path)); step.closed {
			holds(t, step.name+", no log", without, 3)
		} else {
			refused(t, step.name+", no log", without)
		}
	}
	if c, err := readMark(path); err != nil || !c.closed() {
		t.Errorf("the mark after Close: %+v, %v; want a closed one", c, err)
	}
}

// TestKillWhileOpening kills a store after each step of a start that finds the log of a kill.
func TestKillWhileOpening(t *testing.T) {
	first := openAt(t, Config{})
	saved(t, first, 0, 3)
	path := crash(t, first.path)
	c, err := checkMark(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{path: path}
	held, err := s.holdLog(c, "FULL")
	if err != nil {
		t.Fatal(err)
	}
	holds(t, "log held", crash(t, path), 3)
	holds(t, "log held, no log", removeLog(t, crash(t, path)), 3)
	if _, err := migrate(t.Context(), path, "OFF"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + walSuffix); err != nil {
		t.Errorf("the log was removed while it was held: %v", err)
	}
	holds(t, "migrated", crash(t, path), 3)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, "released", crash(t, path), 3)
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
	holds(t, "first commit", crash(t, path), 3)
}

// TestKillAfterTheLogRestarted kills a store between the first write into a log that starts anew and the next mark.
func TestKillAfterTheLogRestarted(t *testing.T) {
	s := openAt(t, Config{})
	saved(t, s, 0, 3)
	older := crash(t, s.path) // its database file is from before the checkpoint
	fold(t, s)
	before := crash(t, s.path)
	holds(t, "after the checkpoint", crash(t, before), 3)
	refused(t, "after the checkpoint, no log", removeLog(t, crash(t, before)))
	was := s.at
	saved(t, s, 3, 4)
	if restarts(was.salts, s.at.salts) != 1 {
		t.Fatalf("the log did not start anew: %x, then %x", was.salts, s.at.salts)
	}
	after := crash(t, s.path)
	holds(t, "after the restart", crash(t, after), 4)
	refused(t, "after the restart, no log", removeLog(t, crash(t, after)))

	unmarked := crash(t, after) // the commit is there, its mark is not yet
	copyFile(t, before+markSuffix, unmarked+markSuffix)
	holds(t, "restarted, not marked", crash(t, unmarked), 4)
	refused(t, "restarted, not marked, no log", removeLog(t, crash(t, unmarked)))

	headed := crash(t, before) // only the header of the new log was written
	log, err := os.ReadFile(after + walSuffix)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, headed+walSuffix, 0, log[:logHeaderBytes])
	holds(t, "only the header", crash(t, headed), 3)
	flipped := crash(t, headed)
	overwrite(t, flipped+walSuffix, 20, []byte{log[20] ^ 1})
	refused(t, "the header, damaged", flipped)

	for name, files := range map[string]string{"restarted": after, "not marked": unmarked, "only the header": headed} {
		old := crash(t, files)
		copyFile(t, older, old)
		refused(t, "an older database under the log, "+name, old)
	}
	saved(t, s, 4, 6)
	fold(t, s)
	saved(t, s, 6, 7)
	behind := crash(t, s.path) // as after a power failure that kept the mark of an older log
	copyFile(t, before+markSuffix, behind+markSuffix)
	holds(t, "two logs later", behind, 7)
	old := crash(t, s.path)
	copyFile(t, before+walSuffix, old+walSuffix)
	refused(t, "a log of before", old)
	old = crash(t, s.path)
	copyFile(t, before, old)
	refused(t, "a database of the log before", old)
}

// TestOlderCopyOfTheSameRun: a copy of the database file that was made while the server ran is not taken for the
// one that the server closed.
func TestOlderCopyOfTheSameRun(t *testing.T) {
	s := openAt(t, Config{})
	saved(t, s, 0, 3)
	fold(t, s)
	older := crash(t, s.path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyFile(t, older, s.path)
	refused(t, "a copy from before Close", s.path)
}

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

// TestForeignProgramMovesTheLog: another program opens the database of a killed server and closes it, which moves
// the log into the database and removes it. That looks like a lost log; the refusal says so, and nothing is lost
// when it is accepted.
func TestForeignProgramMovesTheLog(t *testing.T) {
	s := openAt(t, Config{})
	saved(t, s, 0, 3)
	path := crash(t, s.path)
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
		t.Fatalf("the log is still there: %v", err)
	}
	refused(t, "the log was moved", path)
	if _, err := checkMark(path); err == nil || !strings.Contains(err.Error(), "sqlite3") {
		t.Errorf("the refusal does not name the other program: %v", err)
	}
	if lost, err := AcceptLoss(t.Context(), path); err != nil || lost < 1 {
		t.Fatalf("accepted: %d commits, %v; want at least 1", lost, err)
	}
	holds(t, "accepted", path, 3)
}

// TestForeignReaderKeepsTheLog: a program that reads an older state while the store closes keeps the log from being
// moved. The mark does not say that it was.
func TestForeignReaderKeepsTheLog(t *testing.T) {
	s := openAt(t, Config{})
	saved(t, s, 0, 2)
	reader, err := sqlite.OpenConn(s.path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"begin", "select count(*) from setting"} {
		if err := sqlitex.ExecuteTransient(reader, text, nil); err != nil {
			t.Fatal(err)
		}
	}
	saved(t, s, 2, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, "closed beside a reader", crash(t, s.path), 3)
	refused(t, "closed beside a reader, no log", removeLog(t, crash(t, s.path)))
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
	holds(t, "closed beside an idle reader, no log", removeLog(t, crash(t, s.path)), 3)
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, "the reader has closed", s.path, 3)
}

// TestMarkOfTheReleaseBefore: a mark that knows only the number of commits is compared once, and replaced.
func TestMarkOfTheReleaseBefore(t *testing.T) {
	s := openAt(t, Config{})
	saved(t, s, 0, 3)
	path := crash(t, s.path)
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
	refused(t, "one commit more than there is", setMark(crash(t, path), has+1))
	upgraded := setMark(crash(t, path), has)
	later := openAt(t, Config{Path: upgraded})
	holds(t, "upgraded", crash(t, upgraded), 3)
	refused(t, "upgraded, no log", removeLog(t, crash(t, upgraded)))
	if c, err := readMark(upgraded); err != nil || c.numbered || c.at != later.at {
		t.Errorf("the mark after the upgrade: %+v, %v; want the position %+v", c, err, later.at)
	}
	longer := crash(t, path) // the release before writes its line over the longer one, after a downgrade
	overwrite(t, longer+markSuffix, 0, appendSum(fmt.Appendf(nil, "lessor 1 %020d", has+1)))
	refused(t, "one commit more, after a downgrade", longer)
	emptyMark := crash(t, path)
	overwrite(t, emptyMark+markSuffix, 20, []byte("x"))
	holds(t, "a damaged mark", removeLog(t, emptyMark), 0)
}

// TestLogOfTheOtherByteOrder: a log whose checksums have the byte order of another machine is understood.
func TestLogOfTheOtherByteOrder(t *testing.T) {
	s := openAt(t, Config{})
	saved(t, s, 0, 3)
	path := crash(t, s.path)
	log, err := os.ReadFile(path + walSuffix)
	if err != nil {
		t.Fatal(err)
	}
	log[3] ^= 1 // the last bit of the magic number says which order
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
	refused(t, "other checksums than the mark's", crash(t, path))
	c, err := readMark(path)
	if err != nil {
		t.Fatal(err)
	}
	c.at.sum = sum
	if err := os.WriteFile(path+markSuffix, markLine(nil, c), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, "the other byte order", crash(t, path), 3)
	overwrite(t, path+walSuffix, int64(len(log))-10, []byte{log[len(log)-10] ^ 1})
	refused(t, "the other byte order, damaged", path)
}
