package recovery

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor/internal/pgtest"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres"
	"lessor/internal/store/sqlite"
)

var pool = &pgtest.Pool{Migrate: func(ctx context.Context, url string) error {
	s, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}}

func TestMain(m *testing.M) { os.Exit(pool.Main(m)) }

// onEachStore runs a test on SQLite, and on PostgreSQL with the clock of the bubble. There all durations are
// divided by twenty: an idle server queries its database eight times a second.
func onEachStore(t *testing.T, cfg Config, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { inWorld(t, cfg, test) })
	t.Run("postgres", func(t *testing.T) {
		url := pool.Database(t)
		runSQL(t, url, fakeClock)
		inWorldOf(t, cfg, 20, func(w *world) (scheduler.Store, error) { return openPostgres(w, url) }, test)
	})
}

// aTick is the shortest time that every store can measure: a millisecond, at a pace of twenty.
const aTick = 20 * time.Millisecond

// wall is what the server's wall clock says.
func (w *world) wall() time.Time { return time.Now().Add(time.Duration(w.step.Load())) }

func openSQLite(w *world) (scheduler.Store, error) {
	start := time.Now()
	return sqlite.Open(w.ctx, sqlite.Config{
		Path: filepath.Join(w.dir, "lessor.db"), Synchronous: "OFF", Now: w.wall, Mono: func() time.Duration {
			return time.Since(start)
		},
	})
}

// fakeClock gives the database a clock that tests set. It comes before the real one in the search path, so every
// statement of the store uses it.
const fakeClock = `create schema fake;
create sequence fake.micros minvalue 0;
create function fake.clock_timestamp() returns timestamptz volatile language sql
	as 'select to_timestamp(last_value / 1e6) from fake.micros';
do $$ begin execute format('alter database %I set search_path = fake, public, pg_catalog', current_database()); end $$`

func runSQL(t *testing.T, url, text string) {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	if _, err := c.Exec(t.Context(), text).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// clocked is a store that sets the clock of its database before each operation.
type clocked struct {
	*postgres.Store
	w *world

	mu    sync.Mutex
	conn  *pgconn.PgConn
	known time.Time
}

func openPostgres(w *world, url string) (scheduler.Store, error) {
	conn, err := pgconn.Connect(w.ctx, url)
	if err != nil {
		return nil, err
	}
	s := &clocked{w: w, conn: conn}
	s.setClock()
	s.Store, err = postgres.Open(w.ctx, postgres.Config{URL: url})
	return s, err
}

func (s *clocked) setClock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.w.wall()
	if now.Equal(s.known) {
		return
	}
	s.known = now
	text := fmt.Sprintf("select setval('fake.micros', %d)", now.UnixMicro())
	if _, err := s.conn.Exec(context.Background(), text).ReadAll(); err != nil {
		s.w.t.Errorf("set the database's clock: %v", err)
	}
}

func (s *clocked) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	s.setClock()
	return s.Store.Update(ctx, fn)
}

func (s *clocked) Send(ctx context.Context, on scheduler.Footing, fn func(scheduler.Tx) error) (func() error, error) {
	s.setClock()
	return s.Store.Send(ctx, on, fn)
}

func (s *clocked) View(ctx context.Context, fn func(scheduler.View) error) error {
	s.setClock()
	return s.Store.View(ctx, fn)
}

func (s *clocked) Serve(ctx context.Context, anew bool) (rules.Serving, error) {
	s.setClock()
	return s.Store.Serve(ctx, anew)
}

func (s *clocked) Close() error {
	if err := s.conn.Close(context.Background()); err != nil {
		return err
	}
	return s.Store.Close()
}
