package node

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"lessor"
	"lessor/internal/pgtest"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres"
	"lessor/internal/store/sqlite"
	"lessor/internal/token"
)

var pool = &pgtest.Pool{Migrate: func(ctx context.Context, url string) error {
	s, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}}

func TestMain(m *testing.M) { os.Exit(pool.Main(m)) }

// TestNodesKeepEachOthersAdminTokens: each node has a token file of its own, and its token is valid on every node. A
// node that starts without its file makes another token, and the one before is no longer valid.
func TestNodesKeepEachOthersAdminTokens(t *testing.T) {
	first, second := testConfig(t), testConfig(t)
	first.Store = pool.Database(t)
	second.Store = first.Store
	first.Listen, second.Listen = "127.0.0.1:7001", "127.0.0.1:7002"
	start := func(cfg Config) *Node {
		t.Helper()
		n, err := open(t.Context(), cfg.settings(), nil, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return n
	}
	a, b := start(first), start(second)
	if err := os.Remove(b.TokenFile()); err != nil {
		t.Fatal(err)
	}
	c := start(second)
	for _, n := range []*Node{a, b, c} {
		if err := n.tokens.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, of := range []struct {
			token string
			hash  [32]byte
			valid bool
		}{{"first node's", a.admin, true}, {"removed", b.admin, false}, {"second node's", c.admin, true}} {
			if _, valid := n.tokens.Valid(of.hash, lessor.At(time.Now())); valid != of.valid {
				t.Errorf("on %s: the %s token is valid: %v, want %v", n.name(), of.token, valid, of.valid)
			}
		}
	}
}

// TestAdminTokensOfOperatorsSurviveARestart: operators make tokens beside the server's own one. None of them can have
// its name, because a token of that name is replaced.
func TestAdminTokensOfOperatorsSurviveARestart(t *testing.T) {
	cfg := testConfig(t)
	restart := func() *Node {
		t.Helper()
		n, err := open(t.Context(), cfg.settings(), nil, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := restart()
	older, _, err := token.Issue(token.Ask{Role: new("admin")}, lessor.At(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	older.Name = token.AdminName // made before names were reserved
	err = n.store.Update(t.Context(), func(tx scheduler.Tx) error { return tx.SaveToken(t.Context(), older) })
	if err = errors.Join(err, n.Close()); err != nil {
		t.Fatal(err)
	}
	n = restart()
	defer n.Close()
	for whose, hash := range map[string][32]byte{"server's": n.admin, "operator's": older.Hash} {
		if _, valid := n.tokens.Valid(hash, lessor.At(time.Now())); !valid {
			t.Errorf("the %s token is not valid after a restart", whose)
		}
	}
	for _, name := range []string{token.AdminName, n.adminName(), "admin of 127.0.0.1:7001"} {
		_, _, err := token.Issue(token.Ask{Role: new("admin"), Name: &name}, lessor.At(time.Now()))
		if lessor.CodeOf(err) != lessor.CodeInvalidValue {
			t.Errorf("a token named %q is answered %v, want that the name is not allowed", name, err)
		}
	}
}
