package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"lessor"
	"lessor/internal/config"
	"lessor/internal/httpapi"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// TokenFile returns the path of the file with the admin token, which only its owner can read.
func (n *Node) TokenFile() string { return filepath.Join(n.cfg.Data, TokenName) }

// LoginCode returns a code that opens the dashboard as admin, once and within ten minutes: /login?code=….
func (n *Node) LoginCode() string { return n.dashboard.Code(n.admin) }

// adminName returns the name of the admin token in the store, where it replaces the previous one. On a shared store
// each node has its own token file, and must not end the token of another node.
func (n *Node) adminName() string {
	if n.cfg.AdminToken != "" || !n.store.Shared() {
		return token.AdminName
	}
	return token.AdminName + " of " + n.name()
}

// adminToken stores the admin token: the configured one, else the one in the file, else a new one. It writes to the
// store directly, because the scheduler does not run yet.
func (n *Node) adminToken(ctx context.Context) error {
	secret, err := n.adminSecret()
	if err != nil {
		return err
	}
	n.admin = token.Hash(secret)
	role, name := string(token.Admin), n.adminName()
	err = n.store.Update(ctx, func(tx scheduler.Tx) error {
		known, err := tx.Tokens(ctx)
		if err != nil {
			return err
		}
		hash := n.admin
		if slices.ContainsFunc(known, func(t scheduler.Token) bool { return t.Hash == hash }) {
			return nil
		}
		for _, t := range known {
			if t.Name == name && t.Role == role {
				if _, err := scheduler.DropToken(ctx, tx, t.ID); err != nil { // t is the previous admin token
					return err
				}
			}
		}
		t, _, err := token.Issue(token.Ask{Role: &role}, lessor.At(time.Now()))
		if err != nil {
			return err
		}
		t.Name, t.Hash = name, hash
		return tx.SaveToken(ctx, t)
	})
	if err != nil {
		return fmt.Errorf("store admin token: %w", err)
	}
	return n.tokens.Refresh(ctx)
}

// adminSecret returns the secret of the admin token, and creates the file if there is none.
func (n *Node) adminSecret() (string, error) {
	if n.cfg.AdminToken != "" {
		return n.cfg.AdminToken, nil
	}
	raw, err := os.ReadFile(n.TokenFile())
	if err == nil && strings.TrimSpace(string(raw)) != "" {
		return strings.TrimSpace(string(raw)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read admin token: %w", err)
	}
	n.first = true
	secret := token.NewSecret()
	if err := maybe.WriteFile(n.TokenFile(), []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write admin token: %w", err)
	}
	return secret, nil
}

// Access says in one line which callers need a token, and why.
func (n *Node) Access() string {
	switch {
	case n.cfg.Auth == config.AuthRequired:
		return "every call needs a token (auth: required)"
	case len(n.cfg.HTTP.Hosts) > 0:
		return "every call needs a token (http.hosts is set)"
	case !n.tokenless():
		return "every call needs a token (this is no loopback address)"
	case n.tokens.Bound():
		return "every call needs a token (a token is bound to a tenant)"
	}
	return "callers on this machine need no token for most calls"
}

func (n *Node) tokenless() bool {
	return httpapi.Tokenless(n.cfg.Listen, n.cfg.HTTP.Hosts, n.cfg.Auth == config.AuthRequired)
}

// announceAccess logs that tokenless access has ended, because the first token bound to a tenant exists, or that it
// is back. The token may have been created or deleted on another node.
func (n *Node) announceAccess(bound bool) {
	switch {
	case !n.tokenless():
	case bound:
		n.log.Warn("tokenless access has ended: a token is bound to a tenant, so every call needs one now")
	default:
		n.log.Warn("tokenless access is back: no token is bound to a tenant any more")
	}
}
