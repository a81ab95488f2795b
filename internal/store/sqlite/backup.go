package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	return readFault(ctx, "back up", query(conn, "vacuum into ?", func(a *args) { a.Text(name) }, nil))
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
