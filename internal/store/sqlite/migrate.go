package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver that goose works through

	"lessor/internal/rules"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date on a connection of its own, which it closes. It refuses a schema that this
// program cannot use. It returns the seal of the store, and creates its key if there is none.
func migrate(ctx context.Context, path, synchronous string) (seal *rules.Seal, err error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", fileURI(path, "_pragma", "synchronous("+synchronous+")"))
	if err != nil {
		return nil, fault("open for migration", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	is, knows, err := provider.GetVersions(ctx)
	if err != nil {
		return nil, fault("read schema version", err)
	}
	if is < knows {
		if _, err := provider.Up(ctx); err != nil {
			return nil, fault("migrate", err)
		}
	}
	var stated string
	if err := db.QueryRowContext(ctx, readStated).Scan(&stated); err != nil {
		return nil, fault("read schema version", err)
	}
	if err := rules.CheckSchema(is, knows, stated); err != nil {
		return nil, err
	}
	return readSeal(ctx, db)
}

// readStated reads what the newest migration states about older programs, as rules.CheckSchema takes it.
const readStated = "select coalesce((select cast(value as text) from setting where name = 'schema'), '')"

func readSeal(ctx context.Context, db *sql.DB) (*rules.Seal, error) {
	var key []byte
	err := db.QueryRowContext(ctx, "select value from setting where name = 'seal'").Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		_, err = db.ExecContext(ctx, "insert into setting (name, value) values ('seal', ?)", key)
	}
	if err != nil {
		return nil, fault("read the key of the seal", err)
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("the key of the seal has %d bytes instead of 32", len(key))
	}
	return rules.NewSeal([32]byte(key)), nil
}

// fileURI returns the URI of a file for SQLite, with one parameter. The path may hold any character.
func fileURI(path, name, value string) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{name: {value}}.Encode()}
	return u.String()
}
