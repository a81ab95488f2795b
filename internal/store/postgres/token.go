package postgres

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

const tokenColumns = "id, hash, name, role, tenant, created_at, expires_at"

var (
	readTokens = wire.SQL("select " + tokenColumns + " from token order by created_at desc, id desc")
	saveToken  = wire.SQL("insert into token (" + tokenColumns + ") values ($1::uuid, $2::bytea, $3::text, $4::text, $5::uuid, $6::bigint, $7::bigint)" +
		" on conflict (id) do update set hash = excluded.hash, name = excluded.name, role = excluded.role," +
		" tenant = excluded.tenant, created_at = excluded.created_at, expires_at = excluded.expires_at")
	dropToken = wire.SQL("delete from token where id = $1::uuid returning 1")
)

// Tokens implements scheduler.View.
func (v *view) Tokens(context.Context) ([]scheduler.Token, error) {
	var tokens []scheduler.Token
	err := v.query("read tokens", readTokens, func(r *wire.Row) error {
		tokens = append(tokens, readToken(r))
		return nil
	})
	return tokens, err
}

func readToken(r *wire.Row) scheduler.Token {
	t := scheduler.Token{ID: lessor.TokenID{UUID: r.ID()}}
	copy(t.Hash[:], r.Bytes())
	t.Name = r.Text()
	t.Role = r.Text()
	// The zero tenant is one like others, and not the same as none.
	if r.IsNull() {
		r.Skip(1)
	} else {
		t.Tenant = &lessor.TenantID{UUID: r.ID()}
	}
	t.CreatedAt = r.Instant()
	t.ExpiresAt = r.Instant()
	return t
}

// SaveToken implements scheduler.Tx.
func (t *tx) SaveToken(_ context.Context, token scheduler.Token) error {
	var tenant []byte
	if token.Tenant != nil {
		tenant = wire.ID(token.Tenant.UUID)
	}
	return t.write("save token", wire.Step{Stmt: saveToken}, wire.ID(token.ID.UUID), token.Hash[:], wire.Text(token.Name), wire.Text(token.Role),
		tenant, wire.Instant(token.CreatedAt), wire.Instant(token.ExpiresAt))
}

// DeleteToken implements scheduler.Tx.
func (t *tx) DeleteToken(_ context.Context, id lessor.TokenID) (was bool, err error) {
	t.wrote = true
	err = t.query("delete token", dropToken, func(*wire.Row) error {
		was = true
		return nil
	}, wire.ID(id.UUID))
	return was, err
}
