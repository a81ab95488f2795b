package postgres

import (
	"context"
	stdsql "database/sql"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver pgx
	"github.com/pressly/goose/v3"

	"lessor/internal/scheduler"
)

// TestMigrationShowsRunsOfTheFirstSchema migrates a database that holds jobs in every place from the first schema to
// this one. Their runs must read like those of jobs that were stored with this schema.
func TestMigrationShowsRunsOfTheFirstSchema(t *testing.T) {
	modern := pool.Database(t)
	s := &stage{T: t, store: openAt(t, patient(modern))}
	s.makeRuns("")
	s.makeRuns("nightly")
	want := readRuns(t, modern)
	open := openJobs(t, modern)

	old := pool.Bare(t)
	migrateTo(t, old, 1)
	for table, columns := range map[string]string{
		"lane": "id, hash, " + laneColumns, "job": jobColumns, "queue": turnColumns,
		"delayed": waitingColumns, "lease": leaseColumns,
		"attempt": attemptColumns, "done": doneColumns,
	} {
		// The columns that are left out came later.
		copyTable(t, modern, old, table,
			strings.NewReplacer(", taker", "", ", token", "", ", bound", "",
				", journal_entries, journal_bytes", "").Replace(columns))
	}
	store := openAt(t, patient(old))
	if err := store.View(t.Context(), func(scheduler.View) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, readRuns(t, old)); d != "" || len(want) == 0 {
		t.Errorf("%d runs before, want some, and the same after the migration (-before +after):\n%s", len(want), d)
	}
	if d := cmp.Diff(open, openJobs(t, old)); d != "" || len(open) == 0 {
		t.Errorf("%d jobs of definitions before, want some, and the same after the migration (-before +after):\n%s",
			len(open), d)
	}
}

// openJobs returns, for each job of a definition, whether it is open.
func openJobs(t *testing.T, url string) map[string]string {
	t.Helper()
	jobs := map[string]string{}
	readAll(t, url, "select definition || ' ' || job, open from definition_job",
		func(values [][]byte) { jobs[string(values[0])] = string(values[1]) })
	return jobs
}

// migrateTo brings an empty database to a version of the schema.
func migrateTo(t *testing.T, url string, version int64) {
	t.Helper()
	db, err := stdsql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(context.Background(), version); err != nil {
		t.Fatal(err)
	}
}

// copyTable copies the rows of a table to another database.
func copyTable(t *testing.T, from, to, table, columns string) {
	t.Helper()
	readAll(t, from, "select quote_literal(coalesce(json_agg(r), '[]')::text)"+
		" from (select "+columns+" from "+table+") r", func(values [][]byte) {
		readAll(t, to, "insert into "+table+" ("+columns+") overriding system value select "+columns+
			" from json_populate_recordset(null::"+table+", "+string(values[0])+")", nil)
	})
}
