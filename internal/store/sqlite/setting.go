package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

const saveSetting = "insert into setting (name, value) values (?, ?)" +
	" on conflict (name) do update set value = excluded.value"

// Setting implements scheduler.View.
func (v *view) Setting(ctx context.Context, name string) (value []byte, err error) {
	err = query(v.conn, "select value from setting where name = ?",
		func(a *args) { a.Text(name) },
		func(r *result) error {
			value = r.Bytes()
			return nil
		})
	return value, readFault(ctx, "read setting", err)
}

// SaveSetting implements scheduler.Tx.
func (t *tx) SaveSetting(_ context.Context, name string, value []byte) error {
	if value == nil {
		return t.runOnce("delete setting", "delete from setting where name = ?", func(a *args) { a.Text(name) })
	}
	return t.do("save setting", func() error { return t.w.setting(name, value) })
}

func (w *writer) setting(name string, value []byte) error {
	a := args{stmt: w.saveSetting}
	a.Text(name)
	a.Bytes(value)
	return exec(w.saveSetting)
}

var (
	handlerColumns = row.Columns(row.Handler)
	readHandlers   = "select " + handlerColumns + " from handler order by id"
	saveHandler    = insertOne("replace into handler", handlerColumns)
	policyColumns  = row.Columns(row.Policy)
	readPolicies   = "select " + policyColumns + " from policy order by tenant, class"
	savePolicy     = insertOne("replace into policy", policyColumns)
	tokenColumns   = row.Columns(row.Token)
	readTokens     = "select " + tokenColumns + " from token order by created_at desc, id desc"
	saveToken      = insertOne("insert into token", tokenColumns) +
		" on conflict (id) do update set " + excluded(tokenColumns)
)

// Handlers implements scheduler.View.
func (v *view) Handlers(ctx context.Context) ([]lessor.Handler, error) {
	hs, err := collect(v.conn, readHandlers, nil, row.Handler)
	return hs, readFault(ctx, "read handlers", err)
}

// SaveHandler implements scheduler.Tx.
func (t *tx) SaveHandler(_ context.Context, h lessor.Handler) error {
	if h.Schema == nil {
		return t.runOnce("delete handler", "delete from handler where id = ?", func(a *args) { a.Text(h.HandlerID) })
	}
	return t.runOnce("save handler", saveHandler, func(a *args) { row.Handler(row.Write(a), &h) })
}

// Policies implements scheduler.View.
func (v *view) Policies(ctx context.Context) ([]rules.Policy, error) {
	ps, err := collect(v.conn, readPolicies, nil, row.Policy)
	return ps, readFault(ctx, "read policies", err)
}

// SavePolicy implements scheduler.Tx.
func (t *tx) SavePolicy(_ context.Context, p rules.Policy) error {
	return t.runOnce("save policy", savePolicy, func(a *args) { row.Policy(row.Write(a), &p) })
}

// Tokens implements scheduler.View.
func (v *view) Tokens(ctx context.Context) ([]scheduler.Token, error) {
	tokens, err := collect(v.conn, readTokens, nil, row.Token)
	return tokens, readFault(ctx, "read tokens", err)
}

// SaveToken implements scheduler.Tx.
func (t *tx) SaveToken(_ context.Context, token scheduler.Token) error {
	return t.runOnce("save token", saveToken, func(a *args) { row.Token(row.Write(a), &token) })
}

// DeleteToken implements scheduler.Tx.
func (t *tx) DeleteToken(_ context.Context, id lessor.TokenID) (was bool, err error) {
	err = t.runOnce("delete token", "delete from token where id = ?", func(a *args) { a.ID(id.UUID) })
	return err == nil && t.conn.Changes() > 0, err
}
