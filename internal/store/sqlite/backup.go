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

// copySuffix names the copies of a backup under way. They lie beside the database, where there is room for it.
const copySuffix = ".backup-"

// Backup implements scheduler.Store. The copy is made beside the database and then sent, so that a slow receiver holds
// up no checkpoint; while it is made the WAL grows.
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

// removeOldCopies removes what backups left behind that were cut off with their process.
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
