package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"

	"lessor/internal/scheduler"
	"lessor/internal/store"
)

const (
	// checkTime bounds the reading of all pages. If it is not enough, only the first pages are checked.
	checkTime = 10 * time.Second
	// lowSpace is the free space below which Check warns: a busy server writes as much in a day.
	lowSpace = 1 << 30
	// largeWAL is the size above which Check warns: something holds up the checkpoints.
	largeWAL = 256 << 20
)

// Check implements scheduler.Store.
func (s *Store) Check(ctx context.Context) []scheduler.Finding {
	findings := []scheduler.Finding{
		{Name: "sqlite version", OK: true, Detail: sqlite.Version},
		{Name: "ownership", OK: s.lock != nil, Detail: s.path + ".lock is held by this process"},
		s.checkSize(s.path, "database file", 0),
		s.checkSize(s.path+"-wal", "write-ahead log", largeWAL),
		s.checkSpace(),
	}
	findings = append(findings, s.checkWriter(ctx)...)
	return append(findings, s.checkPages(ctx)...)
}

func (s *Store) checkSize(path, name string, limit int64) scheduler.Finding {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && limit > 0 { // the WAL comes with the first write
		return store.Finding(name, nil, "none")
	}
	if err != nil {
		return store.Finding(name, err, "")
	}
	f := store.Finding(name, nil, "%s, %d KiB", path, st.Size()>>10)
	f.OK = limit == 0 || st.Size() <= limit
	return f
}

func (s *Store) checkSpace() scheduler.Finding {
	free, err := freeSpace(filepath.Dir(s.path))
	f := store.Finding("free space", err, "%d MiB", free>>20)
	f.OK = f.OK && free >= lowSpace
	return f
}

// checkWriter checks the settings of the writer on which durability depends.
func (s *Store) checkWriter(ctx context.Context) []scheduler.Finding {
	if err := s.enter(ctx); err != nil {
		return []scheduler.Finding{store.Finding("writer", err, "")}
	}
	defer s.leave()
	mode, err := text(s.writer.conn, "pragma journal_mode")
	journal := store.Finding("journal_mode", err, "%s", mode)
	journal.OK = journal.OK && mode == "wal"
	level, err := count(s.writer.conn, "pragma synchronous")
	detail := "FULL"
	if s.syncing.data == nil {
		detail = "commits are not synced"
	}
	synchronous := store.Finding("synchronous", err, "%s", detail)
	synchronous.OK = synchronous.OK && level > 0 && s.syncing.data != nil
	writes := scheduler.Finding{Name: "writes", OK: !s.ill, Detail: "the last one succeeded"}
	if s.ill {
		writes.Detail = "the last one failed"
	}
	return []scheduler.Finding{journal, synchronous, writes}
}

// checkPages checks the schema version and reads the file.
func (s *Store) checkPages(ctx context.Context) []scheduler.Finding {
	limited, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	conn, err := s.take(limited)
	if err != nil {
		return []scheduler.Finding{store.Finding("reader", err, "")}
	}
	version, err := schemaVersion(conn)
	schema := store.Finding("schema version", fault("read schema version", err), "%d", version)
	damage, err := text(conn, "pragma quick_check(1)")
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		damage, err = fmt.Sprintf("no damage found in %s", checkTime), nil
	}
	pages := store.Finding("quick_check", fault("check pages", err), "%s", damage)
	pages.OK = pages.OK && damage[:min(2, len(damage))] == "ok"
	back := fault("end check", s.giveBack(conn))
	if back != nil {
		return []scheduler.Finding{schema, pages, store.Finding("reader", back, "")}
	}
	return []scheduler.Finding{schema, pages}
}

// text returns the text that a query returns.
func text(conn *sqlite.Conn, q string) (s string, err error) {
	err = query(conn, q, nil, func(r *result) error {
		s = r.Text()
		return nil
	})
	return s, err
}
