package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// Setting implements scheduler.View.
func (v *view) Setting(_ context.Context, name string) ([]byte, error) {
	s := v.read("read setting")
	value, _ := s.settings.get(key{text: name})
	return slices.Clone(value), v.err
}

// SaveSetting implements scheduler.Tx.
func (t *tx) SaveSetting(_ context.Context, name string, value []byte) error {
	saved := slices.Clone(value)
	return save(t, "save setting", "setting", []string{name}, func(n *string) key { return key{text: *n} },
		func(s *tables, n *string) {
			if saved == nil {
				s.settings.drop(key{text: *n})
			} else {
				s.settings.put(key{text: *n}, saved)
			}
		})
}

// Handlers implements scheduler.View.
func (v *view) Handlers(context.Context) ([]lessor.Handler, error) {
	s := v.read("read handlers")
	return values(s.handlers), v.err
}

// values returns all rows of a table.
func values[V any](t table[V]) (all []V) {
	for _, v := range t.all() {
		all = append(all, v)
	}
	return all
}

// SaveHandler implements scheduler.Tx.
func (t *tx) SaveHandler(_ context.Context, h lessor.Handler) error {
	return save(t, "save handler", "handler", []lessor.Handler{h},
		func(h *lessor.Handler) key { return key{text: h.HandlerID} },
		func(s *tables, h *lessor.Handler) {
			if h.Schema == nil {
				s.handlers.drop(key{text: h.HandlerID})
			} else {
				s.handlers.put(key{text: h.HandlerID}, *h)
			}
		})
}

// Policies implements scheduler.View.
func (v *view) Policies(context.Context) ([]rules.Policy, error) {
	s := v.read("read policies")
	ps := values(s.policies)
	slices.SortStableFunc(ps, func(a, b rules.Policy) int {
		return key{id: a.Tenant.UUID}.compare(key{id: b.Tenant.UUID})
	})
	return ps, v.err
}

// SavePolicy implements scheduler.Tx.
func (t *tx) SavePolicy(_ context.Context, p rules.Policy) error {
	k := func(p *rules.Policy) key { return key{text: p.Class, id: p.Tenant.UUID} }
	return save(t, "save policy", "policy", []rules.Policy{p}, k,
		func(s *tables, p *rules.Policy) { s.policies.put(k(p), *p) })
}

// Tokens implements scheduler.View.
func (v *view) Tokens(context.Context) ([]scheduler.Token, error) {
	s := v.read("read tokens")
	tokens := values(s.tokens)
	slices.SortFunc(tokens, func(a, b scheduler.Token) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), key{id: b.ID.UUID}.compare(key{id: a.ID.UUID}))
	})
	return tokens, v.err
}

// SaveToken implements scheduler.Tx. Two tokens with one hash are scheduler.ErrBadCall.
func (t *tx) SaveToken(_ context.Context, token scheduler.Token) error {
	return t.do("save token", func() error {
		if err := t.acquire(lock{table: "token"}); err != nil {
			return err
		}
		for _, o := range t.state.tokens.all() {
			if o.Hash == token.Hash && o.ID != token.ID {
				return fmt.Errorf("%w: the hash of token %s", scheduler.ErrBadCall, o.ID)
			}
		}
		t.write(func(s *tables) { s.tokens.put(key{id: token.ID.UUID}, token) })
		return nil
	})
}

// DeleteToken implements scheduler.Tx.
func (t *tx) DeleteToken(_ context.Context, id lessor.TokenID) (was bool, err error) {
	err = t.do("delete token", func() error {
		k := key{id: id.UUID}
		if err := t.acquire(lock{table: "token"}); err != nil {
			return err
		}
		was = t.state.tokens.has(k)
		t.write(func(s *tables) { s.tokens.drop(k) })
		return nil
	})
	return was, err
}
