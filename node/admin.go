package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// TokenFile is where the admin token is kept, readable by its owner only.
func (n *Node) TokenFile() string { return filepath.Join(n.cfg.Data, TokenName) }

// LoginCode returns a code that opens the dashboard as admin once, within ten minutes: /login?code=….
func (n *Node) LoginCode() string { return n.dashboard.Code(n.admin) }

// adminName is what the admin token is called in the store, where it takes the place of the one before. On a shared
// store each node has a file of its own, and must not end the token in another's.
func (n *Node) adminName() string {
	if n.cfg.AdminToken != "" || !n.store.Shared() {
		return "admin"
	}
	return "admin of " + n.name()
}

// adminToken sees to it that there is an admin token: the one that was set, else the one in the file, else a new one.
// It goes to the store directly, because the scheduler does not run yet.
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
		for _, t := range known {
			if t.Hash == hash {
				return nil
			}
			if t.Name == name && t.Role == role {
				if _, err := scheduler.DropToken(ctx, tx, t.ID); err != nil { // the one before was changed
					return err
				}
			}
		}
		t, _, err := token.Issue(token.Ask{Role: &role, Name: &name}, lessor.At(time.Now()))
		if err != nil {
			return err
		}
		t.Hash = hash
		return tx.SaveToken(ctx, t)
	})
	if err != nil {
		return fmt.Errorf("store admin token: %w", err)
	}
	if err := n.tokens.Refresh(ctx); err != nil {
		return fmt.Errorf("load tokens: %w", err)
	}
	return nil
}

// adminSecret returns the admin token itself.
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
