package postgres

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
)

const tokenColumns = "id, hash, name, role, tenant, created_at, expires_at"

var (
	readTokens = sql("select " + tokenColumns + " from token order by created_at desc, id desc")
	saveToken  = sql("insert into token (" + tokenColumns + ") values ($1::uuid, $2::bytea, $3::text, $4::text, $5::uuid, $6::bigint, $7::bigint)" +
		" on conflict (id) do update set hash = excluded.hash, name = excluded.name, role = excluded.role," +
		" tenant = excluded.tenant, created_at = excluded.created_at, expires_at = excluded.expires_at")
	dropToken = sql("delete from token where id = $1::uuid returning 1")
)

// Tokens implements scheduler.View.
func (v *view) Tokens(context.Context) ([]scheduler.Token, error) {
	var tokens []scheduler.Token
	err := v.query("read tokens", readTokens, func(r *row) error {
		tokens = append(tokens, readToken(r))
		return nil
	})
	return tokens, err
}

func readToken(r *row) scheduler.Token {
	t := scheduler.Token{ID: lessor.TokenID{UUID: r.id()}}
	copy(t.Hash[:], r.value())
	t.Name = r.text()
	t.Role = r.text()
	// The zero tenant is one like others, and not the same as none.
	if r.isNull() {
		r.skip(1)
	} else {
		t.Tenant = &lessor.TenantID{UUID: r.id()}
	}
	t.CreatedAt = r.instant()
	t.ExpiresAt = r.instant()
	return t
}

// SaveToken implements scheduler.Tx.
func (t *tx) SaveToken(_ context.Context, token scheduler.Token) error {
	var tenant []byte
	if token.Tenant != nil {
		tenant = uuidOf(token.Tenant.UUID)
	}
	return t.write("save token", step{stmt: saveToken}, uuidOf(token.ID.UUID), token.Hash[:], textOf(token.Name), textOf(token.Role),
		tenant, instantOf(token.CreatedAt), instantOf(token.ExpiresAt))
}

// DeleteToken implements scheduler.Tx.
func (t *tx) DeleteToken(_ context.Context, id lessor.TokenID) (was bool, err error) {
	t.wrote = true
	err = t.query("delete token", dropToken, func(*row) error {
		was = true
		return nil
	}, uuidOf(id.UUID))
	return was, err
}
