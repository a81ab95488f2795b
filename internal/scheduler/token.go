package scheduler

import (
	"context"

	"lessor"
)

// Tokens returns all access tokens, newest first.
func (s *Scheduler) Tokens(ctx context.Context) (tokens []Token, err error) {
	err = s.view(ctx, "load tokens", func(v View) (err error) {
		tokens, err = v.Tokens(ctx)
		return err
	})
	return tokens, err
}

// SaveToken stores a token.
func (s *Scheduler) SaveToken(ctx context.Context, c Caller, t Token) error {
	return s.change(ctx, c, func(ctx context.Context, p *pass) error {
		p.audit(c, "token.created", "token/"+t.ID.String(), nil, map[string]any{
			"name": t.Name, "role": t.Role, "tenantId": t.Tenant, "expiresAt": t.ExpiresAt,
		})
		return p.tx.SaveToken(ctx, t)
	})
}

// DeleteToken ends a token.
func (s *Scheduler) DeleteToken(ctx context.Context, c Caller, id lessor.TokenID) error {
	return s.change(ctx, c, func(ctx context.Context, p *pass) error {
		found, err := DropToken(ctx, p.tx, id)
		if err == nil && !found {
			return lessor.ErrTokenNotFound
		}
		p.audit(c, "token.deleted", "token/"+id.String(), nil, nil)
		return err
	})
}
