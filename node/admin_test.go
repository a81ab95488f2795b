package node

import (
	"context"
	"os"
	"testing"
	"time"

	"lessor"
	"lessor/internal/pgtest"
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
