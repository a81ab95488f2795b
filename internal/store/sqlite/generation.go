package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// The generation of a database rises at each Open and Close and once in each write-ahead log. It is stored as SQLite's
// user_version, which lies in the first page, so that the generation of the file alone can be read without its log.

// holdLog moves the log that a killed server left into the database, and then closes the mark. It returns a
// connection that keeps the log in place: the last connection to close would remove it. It returns nil if the mark
// is closed already.
func (s *Store) holdLog(c marked, synchronous string) (conn *sqlite.Conn, err error) {
	if c.closed() {
		return nil, nil
	}
	if s.mark, err = openMark(s.path, c); err != nil {
		return nil, err
	}
	if conn, err = sqlite.OpenConn(s.path, sqlite.OpenReadWrite); err != nil {
		return nil, fault("open the log", err)
	}
	err = fault("set synchronous", sqlitex.ExecuteTransient(conn, "pragma synchronous = "+synchronous, nil))
	folded := false
	if err == nil {
		folded, err = checkpoint(conn)
	}
	if err == nil && folded {
		err = s.mark.closeAt(c.generation, c.commits)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// begin raises the generation in a first commit and writes the mark. On a full disk it omits the commit: the log
// exists since the first read, and a mark that has its line needs no more space.
func (s *Store) begin(c marked) (err error) {
	if s.commits, err = readCommits(s.writer.conn); err != nil {
		return err
	}
	s.commits = max(s.commits, c.commits)
	generation, err := count(s.writer.conn, "pragma user_version")
	if err != nil {
		return fault("read the generation", err)
	}
	s.generation = uint32(generation)
	if err := s.raiseFloor(c); err != nil {
		return err
	}
	if s.mark == nil {
		if s.mark, err = openMark(s.path, c); err != nil {
			return err
		}
	}
	if err := s.files.remember(s.path); err != nil {
		return err
	}
	if s.at, err = s.files.position(); err != nil {
		return err
	}
	s.syncing.begin(s.lastCommit())
	if err := s.nextGeneration(); err != nil {
		return unless(err, scheduler.ErrFull)
	}
	if s.at, err = s.files.position(); err != nil {
		return err
	}
	s.syncing.written.Store(s.lastCommit())
	if err := unless(s.acknowledge(context.Background(), s.commits), scheduler.ErrFull); err != nil {
		return err
	}
	return s.files.check() // the log has its first frames
}

// floorSetting holds Serving.Fence.
const floorSetting = "sqlite.floor"

const (
	// lastFence reads the highest fence of a job.
	lastFence = "select coalesce(max(fence), 0) from (select fence from queue union all select fence from delayed" +
		" union all select fence from lease union all select fence from done)"
	// moreFence is how many fences a job may have got that are lost. They follow each other while the clock is behind
	// them, because it was set back.
	moreFence = 1000
)

// raiseFloor loads Serving.Fence, and raises it if the database may be an older copy, or lost commits that an operator
// gave up: if it was used before and its mark is empty.
func (s *Store) raiseFloor(c marked) error {
	v := view{conn: s.writer.conn}
	value, err := v.Setting(context.Background(), floorSetting)
	if err != nil {
		return err
	}
	var serving rules.Serving
	if value != nil {
		if serving.Fence, err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return fmt.Errorf("setting %s: %w", floorSetting, err)
		}
	}
	if c == (marked{}) && s.commits > 0 {
		last, err := count(s.writer.conn, lastFence)
		if err != nil {
			return fault("read the last fence", err)
		}
		serving.Fence = max(serving.Fence, int64(s.clock.read().Wall), last+moreFence)
	}
	s.clock.keep(rules.ClockReading{}, serving)
	return nil
}

// nextGeneration is a commit that stores the next generation and the number of commits.
func (s *Store) nextGeneration() (err error) {
	if err := exec(s.writer.begin); err != nil {
		return fault("begin", err)
	}
	defer func() {
		if err != nil {
			s.rollBack()
		}
	}()
	pragma := fmt.Sprintf("pragma user_version = %d", s.generation+1)
	if err := sqlitex.ExecuteTransient(s.writer.conn, pragma, nil); err != nil {
		return fault("store the generation", err)
	}
	if err := s.writer.setting(commitsSetting, strconv.AppendInt(nil, s.commits+1, 10)); err != nil {
		return fault("store the number of commits", err)
	}
	if floor := s.clock.known().Fence; floor > 0 {
		if err := s.writer.setting(floorSetting, strconv.AppendInt(nil, floor, 10)); err != nil {
			return fault("store the floor", err)
		}
	}
	if err := s.files.checkLog(); err != nil {
		return err
	}
	if err := exec(s.writer.commit); err != nil {
		return fault("commit", err)
	}
	s.generation++
	s.commits++
	return nil
}

// writeMark writes the position of a commit into the mark. The caller has the turn of syncing. Some file systems need
// free space even to overwrite. If they have none, the commit stands, and the mark covers less than there is until the
// next one.
func (s *Store) writeMark(c *commit) error {
	switch err := s.mark.advance(c); {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("mark the commit: %w: %w: %w", scheduler.ErrFull, scheduler.ErrUnknownOutcome, err)
	case err != nil:
		return fmt.Errorf("%w: mark the commit: %w", scheduler.ErrBroken, err)
	}
	return nil
}

// closeLog moves the log into the database and closes the mark, before SQLite removes the log. If the log cannot be
// moved, the mark stays as it is.
func (s *Store) closeLog() error {
	if err := s.files.check(); err != nil {
		return s.lost(err)
	}
	// The new generation distinguishes the database from a copy made earlier. Close does without it if the disk is
	// full or another process holds the lock.
	if err := s.nextGeneration(); errors.Is(err, scheduler.ErrBroken) {
		return s.lost(err)
	}
	folded, err := checkpoint(s.writer.conn)
	if err != nil || !folded {
		return err
	}
	return s.mark.closeAt(s.generation, s.commits)
}

// closeMark closes the mark's file. If SQLite has removed the log although closeLog could not move it, the database
// holds everything.
func (s *Store) closeMark() error {
	var err error
	if _, gone := os.Stat(s.path + walSuffix); errors.Is(gone, os.ErrNotExist) && !s.mark.closed() && !s.lostFiles {
		err = s.mark.closeAt(s.mark.generation, s.mark.commits)
	}
	return errors.Join(err, s.mark.file.Close())
}

// checkpoint copies the log into the database file and syncs it. It returns false if the disk is full or another
// process reads an older state.
func checkpoint(conn *sqlite.Conn) (folded bool, err error) {
	err = query(conn, "pragma wal_checkpoint(passive)", nil, func(r *result) error {
		busy, frames, copied := r.Int(), r.Int(), r.Int()
		folded = busy == 0 && frames == copied
		return nil
	})
	err = fault("move the log into the database", err)
	return folded && err == nil, unless(err, scheduler.ErrFull)
}
