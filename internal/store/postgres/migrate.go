package postgres

import (
	"context"
	"crypto/rand"
	stdsql "database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"lessor/internal/rules"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// Nodes that start at once wait for the one that migrates, asking this often, this many times: three minutes.
	lockPause = 250 * time.Millisecond
	lockAsks  = 720
	// migrateTries is for creating the tables that the waiting itself needs, where nodes that start at once conflict.
	migrateTries = 10
)

// migrate brings the schema up to date, on connections of its own that are closed when it returns. It refuses a schema
// that this program cannot use. It returns the seal of the store, whose key it makes if there is none.
func migrate(ctx context.Context, url string, config *pgconn.Config) (seal *rules.Seal, err error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the address: %w", err)
	}
	c.Config = *config
	c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // no session state: a pooler may stand between
	db := stdlib.OpenDB(*c)
	defer func() { err = errors.Join(err, db.Close()) }()
	for try := 1; ; try++ {
		err = migrateOnce(ctx, db)
		if err == nil || try == migrateTries || !inTheWay(err) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return readSeal(ctx, db)
}

// readSeal returns the seal of the store. Of nodes that start at once the first makes the key.
func readSeal(ctx context.Context, db *stdsql.DB) (*rules.Seal, error) {
	const read = "select value from setting where name = 'seal'"
	var key []byte
	err := db.QueryRowContext(ctx, read).Scan(&key)
	if errors.Is(err, stdsql.ErrNoRows) {
		made := make([]byte, 32)
		_, _ = rand.Read(made) // it never fails
		const put = "insert into setting (name, value) values ('seal', $1) on conflict do nothing"
		if _, err := db.ExecContext(ctx, put, made); err != nil {
			return nil, fault("make the key of the seal", err)
		}
		err = db.QueryRowContext(ctx, read).Scan(&key)
	}
	if err != nil {
		return nil, fault("read the key of the seal", err)
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("the key of the seal has %d bytes instead of 32", len(key))
	}
	return rules.NewSeal([32]byte(key)), nil
}

// inTheWay reports whether another node created the same object at the same moment.
func inTheWay(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "23505", "42P07", "42710", "40P01", "XX000": // exists already, in several words; "tuple concurrently updated"
		return true
	}
	return false
}

func migrateOnce(ctx context.Context, db *stdsql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableLockTimeout(lockPause, lockAsks), lock.WithTableLogger(quiet))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(
		goose.DialectPostgres, db, files, goose.WithLocker(locker), goose.WithSlog(quiet))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	is, knows, err := provider.GetVersions(ctx)
	if err != nil {
		return fault("read schema version", err)
	}
	if is < knows {
		if _, err := provider.Up(ctx); err != nil {
			return fault("migrate", err)
		}
		return nil
	}
	var stated string
	const read = "select coalesce((select convert_from(value, 'UTF8') from setting where name = 'schema'), '')"
	if err := db.QueryRowContext(ctx, read).Scan(&stated); err != nil {
		return fault("read schema version", err)
	}
	return rules.CheckSchema(is, knows, stated)
}
