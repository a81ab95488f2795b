package postgres

import (
	"context"
	"io"

	"lessor"
	"lessor/internal/store"
)

// Backup implements scheduler.Store by refusing: a database server has better ways.
func (s *Store) Backup(context.Context, io.Writer) error {
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
	}
	return &lessor.Error{
		Code: lessor.CodeConflict,
		Detail: "a PostgreSQL store is backed up with the server's own tools: pg_dump, or base backups" +
			" with WAL archiving (pg_basebackup)",
	}
}
