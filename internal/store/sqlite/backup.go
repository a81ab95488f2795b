package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lessor/internal/scheduler"
)

// copySuffix is in the names of unfinished copies. They are beside the database, where there is room for them.
const copySuffix = ".backup-"

// Backup implements scheduler.Store. It makes a copy beside the database and then sends it, so that a slow receiver
// does not hold up checkpoints. While it copies, the WAL grows.
func (s *Store) Backup(ctx context.Context, w io.Writer) (err error) {
	f, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+copySuffix+"*")
	if err != nil {
		return fmt.Errorf("back up: %w: %w", scheduler.ErrUnreachable, err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if err := s.copyInto(ctx, f.Name()); err != nil {
		return err
	}
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("send backup: %w", err)
	}
	return ctx.Err()
}

func (s *Store) copyInto(ctx context.Context, name string) (err error) {
	conn, err := s.take(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fault("back up", s.giveBack(conn))) }()
	if err := query(conn, "vacuum into ?", func(a *args) { a.Text(name) }, nil); err != nil {
		return readFault(ctx, "back up", err)
	}
	return fault("back up", writeSign(name, copySign))
}

// copySign marks a copy that no server has opened yet. It is stored as SQLite's application_id, which lies in the first
// page. SQLite takes any log beside a database for its own, and would write the log of another database over a copy.
const copySign = 0x4c636f70

func writeSign(path string, sign uint32) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.BigEndian.AppendUint32(nil, sign), applicationID)
	return errors.Join(err, f.Sync(), f.Close())
}

// acceptCopy removes the sign of a copy, which from now on has a log of its own.
func acceptCopy(path string) error {
	sign, err := headerWord(path, applicationID)
	if err != nil || sign != copySign {
		return err
	}
	return writeSign(path, 0)
}

// checkCopy refuses a copy that has a log beside it.
func checkCopy(path string) error {
	sign, err := headerWord(path, applicationID)
	if err != nil || sign != copySign {
		return err
	}
	if log, err := os.Stat(path + walSuffix); err != nil || log.Size() == 0 {
		return unless(err, fs.ErrNotExist)
	}
	return fmt.Errorf("%s is a backup, and the write-ahead log beside it is that of another database: remove %s and %s",
		path, path+walSuffix, path+markSuffix)
}

// removeOldCopies removes the copies of backups whose process was killed.
func removeOldCopies(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("look for old backups: %w", err)
	}
	for _, e := range entries {
		name := filepath.Join(filepath.Dir(path), e.Name())
		if strings.HasPrefix(name, path+copySuffix) {
			if err := os.Remove(name); err != nil {
				return fmt.Errorf("remove old backup: %w", err)
			}
		}
	}
	return nil
}
