package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	readSetting = wire.SQL("select value from setting where name = $1::text")
	saveSetting = wire.SQL("insert into setting (name, value) values ($1::text, $2::bytea)" +
		" on conflict (name) do update set value = excluded.value")
	dropSetting = wire.SQL("delete from setting where name = $1::text")
)

// Setting implements scheduler.View.
func (v *view) Setting(_ context.Context, name string) (value []byte, err error) {
	err = v.query("read setting", readSetting, func(r *wire.Row) error {
		value = r.Bytes()
		return nil
	}, wire.Text(name))
	return value, err
}

// SaveSetting implements scheduler.Tx.
func (t *tx) SaveSetting(_ context.Context, name string, value []byte) error {
	if value == nil {
		return t.write("remove setting", wire.Step{Stmt: dropSetting}, wire.Text(name))
	}
	return t.write("save setting", wire.Step{Stmt: saveSetting}, wire.Text(name), append([]byte{}, value...))
}

var (
	readHandlers = wire.SQL("select " + row.Columns(row.Handler) + " from handler order by id")
	saveHandler  = upsert("handler", "id", row.Handler)
	dropHandler  = wire.SQL("delete from handler where id = $1::text")
	readPolicies = wire.SQL("select " + row.Columns(row.Policy) + " from policy order by tenant, class")
	savePolicy   = upsert("policy", "tenant, class", row.Policy)
	readTokens   = wire.SQL("select " + row.Columns(row.Token) + " from token order by created_at desc, id desc")
	saveToken    = upsert("token", "id", row.Token)
	dropToken    = wire.SQL("delete from token where id = $1::uuid returning 1")
)

// Handlers implements scheduler.View.
func (v *view) Handlers(context.Context) (hs []lessor.Handler, err error) {
	err = v.query("read handlers", readHandlers, collect(&hs, row.Handler))
	return hs, err
}

// SaveHandler implements scheduler.Tx.
func (t *tx) SaveHandler(_ context.Context, h lessor.Handler) error {
	if h.Schema == nil {
		return t.write("delete handler", wire.Step{Stmt: dropHandler}, wire.Text(h.HandlerID))
	}
	return saveArrays(t, "save handler", saveHandler, []lessor.Handler{h}, row.Handler)
}

// Policies implements scheduler.View.
func (v *view) Policies(context.Context) (ps []rules.Policy, err error) {
	err = v.query("read policies", readPolicies, collect(&ps, row.Policy))
	return ps, err
}

// SavePolicy implements scheduler.Tx.
func (t *tx) SavePolicy(_ context.Context, p rules.Policy) error {
	return saveArrays(t, "save policy", savePolicy, []rules.Policy{p}, row.Policy)
}

// Tokens implements scheduler.View.
func (v *view) Tokens(context.Context) (tokens []scheduler.Token, err error) {
	err = v.query("read tokens", readTokens, collect(&tokens, row.Token))
	return tokens, err
}

// SaveToken implements scheduler.Tx.
func (t *tx) SaveToken(_ context.Context, token scheduler.Token) error {
	return saveArrays(t, "save token", saveToken, []scheduler.Token{token}, row.Token)
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
