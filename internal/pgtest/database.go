package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Environment is the variable that names another server for the tests.
const Environment = "LESSOR_TEST_POSTGRES"

// Pool is the one server of a test binary. The first request for a database starts it, and Main stops it.
type Pool struct {
	// Migrate migrates the template database; nil leaves it empty.
	Migrate func(ctx context.Context, url string) error
	// Options are for the throwaway server; they do not change one that Environment names.
	Options Options

	once   sync.Once
	err    error
	server *Server
	admin  string // URL of the database from which others are made
	prefix string
	made   atomic.Int64
}

// Main runs the tests of a package and stops the server. Call it from TestMain.
func (p *Pool) Main(m *testing.M) int {
	code := m.Run()
	if err := p.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// Database creates an empty, migrated database for one test and returns its URL. The database is dropped with the test.
func (p *Pool) Database(t testing.TB) string {
	t.Helper()
	p.start(t)
	return p.create(t, p.prefix)
}

// Bare creates a database without tables.
func (p *Pool) Bare(t testing.TB) string {
	t.Helper()
	p.start(t)
	return p.create(t, "template0")
}

// Copy creates a database with everything that another one has, to which nobody may be connected.
func (p *Pool) Copy(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return p.create(t, strings.TrimPrefix(u.Path, "/"))
}

func (p *Pool) create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("%s_%d", p.prefix, p.made.Add(1))
	p.do(t, fmt.Sprintf("create database %q template %q", name, template))
	t.Cleanup(func() { p.do(t, fmt.Sprintf("drop database %q with (force)", name)) })
	address, err := otherDatabase(p.admin, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return address
}

func (p *Pool) start(t testing.TB) {
	t.Helper()
	p.once.Do(func() { p.err = p.prepare() })
	if p.err != nil {
		t.Fatalf("pgtest: %v", p.err)
	}
}

// prepare finds or starts the server and creates the template.
func (p *Pool) prepare() (err error) {
	ctx := context.Background() // of the whole test binary
	p.prefix = fmt.Sprintf("lessor_test_%d", os.Getpid())
	if p.admin = os.Getenv(Environment); p.admin == "" {
		if p.server, err = Start(ctx, p.Options); err != nil {
			return err
		}
		p.admin = p.server.URL("postgres")
	}
	if err := p.exec(ctx, fmt.Sprintf("create database %q", p.prefix)); err != nil {
		return err
	}
	template, err := otherDatabase(p.admin, p.prefix)
	if err != nil || p.Migrate == nil {
		return err
	}
	return p.Migrate(ctx, template)
}

func (p *Pool) stop() error {
	switch {
	case p.server != nil:
		return p.server.Stop()
	case p.admin != "":
		return p.exec(context.Background(), fmt.Sprintf("drop database if exists %q with (force)", p.prefix))
	}
	return nil
}

func (p *Pool) do(t testing.TB, text string) {
	t.Helper()
	if err := p.exec(context.Background(), text); err != nil { // the test's context has ended in a cleanup
		t.Fatalf("pgtest: %s: %v", text, err)
	}
}

func (p *Pool) exec(ctx context.Context, text string) error {
	c, err := pgconn.Connect(ctx, p.admin)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, text).ReadAll()
	return errors.Join(err, c.Close(ctx))
}

// otherDatabase returns the URL of another database on the same server.
func otherDatabase(address, name string) (string, error) {
	if !strings.Contains(address, "://") {
		return "", fmt.Errorf("%s must be a URL like postgres://user@host/postgres", Environment)
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}
