package httpapi

import (
	"net/http"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// tokenShown is a token without its secret.
type tokenShown struct {
	ID        lessor.TokenID   `json:"id"`
	Name      string           `json:"name"`
	Role      token.Role       `json:"role"`
	TenantID  *lessor.TenantID `json:"tenantId"`
	CreatedAt lessor.Instant   `json:"createdAt"`
	ExpiresAt lessor.Instant   `json:"expiresAt"`
}

// tokenMade is a new token with its secret, which no other answer shows.
type tokenMade struct {
	tokenShown
	Token string `json:"token"`
}

type tokenList struct {
	Tokens     []tokenShown `json:"tokens"`
	NextCursor *string      `json:"nextCursor"`
}

type findings struct {
	Findings []scheduler.Finding `json:"findings"`
}

func show(t scheduler.Token) tokenShown {
	return tokenShown{t.ID, t.Name, token.Role(t.Role), t.Tenant, t.CreatedAt, t.ExpiresAt}
}

// maxTokens bounds the tokens, which every node keeps in memory.
const maxTokens = 10000

func (c *call) makeToken(ask *token.Ask) error {
	t, secret, err := token.Issue(*ask, lessor.At(time.Now()))
	if err != nil {
		return err
	}
	if c.api.tokens.Len() >= maxTokens {
		return &lessor.Error{Code: lessor.CodeConflict, Detail: "there are too many tokens; delete some first"}
	}
	if err := c.api.scheduler.SaveToken(c.r.Context(), c.caller, t); err != nil {
		return err
	}
	c.api.tokens.Put(t)
	return c.answer(http.StatusCreated, tokenMade{show(t), secret})
}

func (c *call) listTokens() error {
	all, err := c.api.scheduler.Tokens(c.r.Context())
	if err != nil {
		return err
	}
	key := func(t scheduler.Token) string { return newestFirst(t.CreatedAt) + t.ID.String() }
	page, next, err := pageOf(all, key, c.limit(), c.query.Get("cursor"))
	if err != nil {
		return err
	}
	list := tokenList{Tokens: make([]tokenShown, len(page)), NextCursor: next}
	for i, t := range page {
		list.Tokens[i] = show(t)
	}
	return c.answer(http.StatusOK, list)
}

func (c *call) deleteToken(id lessor.TokenID) error {
	if err := c.api.scheduler.DeleteToken(c.r.Context(), c.caller, id); err != nil {
		return err
	}
	c.api.tokens.Remove(id)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) backup() error {
	h := c.w.Header()
	h.Set("Content-Type", "application/vnd.sqlite3")
	h.Set("Content-Disposition", `attachment; filename="lessor.db"`)
	ctx, release := c.guard(c.r.Context())
	defer release()
	err := heldErr(ctx, c.api.scheduler.Backup(ctx, patient{c}))
	if err != nil && c.w.status == 0 {
		h.Del("Content-Disposition")
	}
	return err
}

// patient gives each part of a long answer the time limit of a whole one.
type patient struct{ c *call }

func (p patient) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.c.w).SetWriteDeadline(time.Now().Add(writeTime))
	return p.c.w.Write(b)
}

func (c *call) doctor() error {
	return c.answer(http.StatusOK, findings{c.api.scheduler.Check(c.r.Context())})
}
