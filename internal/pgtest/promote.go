//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"
)

// Catch waits until a standby has replayed all that its primary has written.
func (s *Server) Catch(ctx context.Context, primary *Server) error {
	at, err := primary.Ask(ctx, "select pg_current_wal_lsn()")
	if err != nil {
		return err
	}
	err = poll(ctx, func() (bool, error) {
		there, err := s.Ask(ctx, "select pg_last_wal_replay_lsn() >= '"+at+"'")
		return err == nil && there == "t", err
	})
	if err != nil {
		return fmt.Errorf("the standby does not reach %s: %w", at, err)
	}
	return nil
}

// Cut disconnects a standby from its primary.
func (s *Server) Cut(ctx context.Context) error {
	if _, err := s.Ask(ctx, "alter system set primary_conninfo = ''"); err != nil {
		return err
	}
	if _, err := s.Ask(ctx, "select pg_reload_conf()"); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		n, err := s.Ask(ctx, "select count(*) from pg_stat_wal_receiver")
		return err != nil || n == "0", err
	})
}

// BothURL returns the address of whichever of two servers accepts writes.
func (s *Server) BothURL(other *Server) string {
	hosts := url.Values{"host": {s.dir + "," + other.dir}, "target_session_attrs": {"read-write"}}
	return "postgres://postgres@/postgres?" + hosts.Encode()
}

// Promote makes a standby the primary.
func (s *Server) Promote(ctx context.Context) error {
	if _, err := s.Ask(ctx, "select pg_promote(false)"); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) { // what it still replays may cancel a query
		up, err := s.Ask(ctx, "select not pg_is_in_recovery()")
		return err == nil && up == "t", err
	})
}

// Ask returns the first value of a statement in the database postgres.
func (s *Server) Ask(ctx context.Context, text string) (string, error) {
	return ask(ctx, s.URL("postgres"), text)
}

// Hold begins a transaction with a statement, and rolls it back when during has returned.
func (s *Server) Hold(ctx context.Context, text string, during func()) error {
	c, err := pgconn.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, "begin; "+text).ReadAll()
	during()
	return errors.Join(err, c.Close(ctx))
}

func ask(ctx context.Context, url, text string) (string, error) {
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	results, err := c.Exec(ctx, text).ReadAll()
	value := ""
	if err == nil && len(results) > 0 && len(results[0].Rows) > 0 {
		value = string(results[0].Rows[0][0])
	}
	return value, errors.Join(err, c.Close(ctx))
}

// Copy saves the data of a killed server for Restore.
func (s *Server) Copy(ctx context.Context) error { return s.copyData(ctx, s.data(), s.data()+".copy") }

// Restore returns a killed server to the data that Copy saved.
func (s *Server) Restore(ctx context.Context) error {
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	return s.copyData(ctx, s.data()+".copy", s.data())
}

func (s *Server) copyData(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the data: %w\n%s", err, out)
	}
	return os.RemoveAll(filepath.Join(to, "postmaster.pid"))
}
