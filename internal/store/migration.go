package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"lessor/internal/scheduler"
)

// NewestMigration returns the number of the last migration, which is the schema version that this program brings a
// database to. The files are named NUMBER_name.sql.
func NewestMigration(migrations fs.FS) (newest int64, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	for _, name := range names {
		text, _, _ := strings.Cut(path.Base(name), "_")
		n, bad := strconv.ParseInt(text, 10, 64)
		newest, err = max(newest, n), errors.Join(err, bad)
	}
	return newest, err
}

// Finding returns what a check found: err, or that all is well.
func Finding(name string, err error, format string, a ...any) scheduler.Finding {
	if err != nil {
		return scheduler.Finding{Name: name, Detail: err.Error()}
	}
	return scheduler.Finding{Name: name, OK: true, Detail: fmt.Sprintf(format, a...)}
}
