package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
)

const (
	tokenColumns = "id, hash, name, role, tenant, created_at, expires_at"
	saveToken    = "insert into token (" + tokenColumns + ") values (?, ?, ?, ?, ?, ?, ?)" +
		" on conflict (id) do update set hash = excluded.hash, name = excluded.name, role = excluded.role," +
		" tenant = excluded.tenant, created_at = excluded.created_at, expires_at = excluded.expires_at"
)

// Tokens implements scheduler.View.
func (v *view) Tokens(ctx context.Context) ([]scheduler.Token, error) {
	var tokens []scheduler.Token
	err := query(v.conn, "select "+tokenColumns+" from token order by created_at desc, id desc", nil, func(r *row) error {
		tokens = append(tokens, readToken(r))
		return nil
	})
	return tokens, readFault(ctx, "read tokens", err)
}

func readToken(r *row) scheduler.Token {
	t := scheduler.Token{ID: lessor.TokenID{UUID: r.id()}}
	copy(t.Hash[:], r.blob())
	t.Name = r.text()
	t.Role = r.text()
	t.Tenant = r.tenantOrNil()
	t.CreatedAt = r.instant()
	t.ExpiresAt = r.instant()
	return t
}

// tenantOrNil keeps the zero tenant, which is one like others, apart from none.
func (r *row) tenantOrNil() *lessor.TenantID {
	if r.stmt.ColumnIsNull(r.n) {
		r.next()
		return nil
	}
	return &lessor.TenantID{UUID: r.id()}
}

// SaveToken implements scheduler.Tx.
func (t *tx) SaveToken(_ context.Context, token scheduler.Token) error {
	return t.do("save token", func() error {
		return query(t.conn, saveToken, func(a *args) {
			a.id(token.ID.UUID)
			a.blob(token.Hash[:])
			a.text(token.Name)
			a.text(token.Role)
			if token.Tenant != nil {
				a.id(token.Tenant.UUID)
			} else {
				a.null()
			}
			a.instant(token.CreatedAt)
			a.instant(token.ExpiresAt)
		}, nil)
	})
}

// DeleteToken implements scheduler.Tx.
func (t *tx) DeleteToken(_ context.Context, id lessor.TokenID) (was bool, err error) {
	err = t.do("delete token", func() error {
		if err := query(t.conn, "delete from token where id = ?", func(a *args) { a.id(id.UUID) }, nil); err != nil {
			return err
		}
		was = t.conn.Changes() > 0
		return nil
	})
	return was, err
}
