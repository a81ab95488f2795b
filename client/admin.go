package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"lessor"
)

// TokenRequest says which token to make.
type TokenRequest struct {
	// Role is viewer, submitter, worker, operator or admin.
	Role string
	// Tenant walls the token in; nil = all tenants.
	Tenant *lessor.TenantID
	// Name is how records name whoever uses the token.
	Name string
	// ExpiresIn ends the token by itself, in whole seconds. Zero means never.
	ExpiresIn time.Duration
}

// Token describes an access token.
type Token struct {
	ID lessor.TokenID `json:"id"`
	// Token is the secret itself. Only CreateToken fills it; it cannot be read again.
	Token     string           `json:"token,omitempty"`
	Name      string           `json:"name"`
	Role      string           `json:"role"`
	TenantID  *lessor.TenantID `json:"tenantId"`
	CreatedAt lessor.Instant   `json:"createdAt"`
	ExpiresAt lessor.Instant   `json:"expiresAt"`
}

// Finding is one line of a server's health check.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// CreateToken makes an access token. It is not repeated: two tokens would be one too many.
func (c *Client) CreateToken(ctx context.Context, r TokenRequest) (Token, error) {
	body := struct {
		Role             string           `json:"role"`
		TenantID         *lessor.TenantID `json:"tenantId,omitempty"`
		ExpiresInSeconds int64            `json:"expiresInSeconds,omitempty"`
		Name             string           `json:"name,omitempty"`
	}{r.Role, r.Tenant, int64((r.ExpiresIn + time.Second - 1) / time.Second), r.Name}
	var token Token
	_, err := c.do(ctx, call{method: http.MethodPost, path: admin + "/tokens", body: body}, &token)
	return token, err
}

// Tokens returns all tokens, newest first.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	var tokens []Token
	for t, err := range eachPage("", func(cursor string) ([]Token, string, error) {
		var answer struct {
			Tokens     []Token `json:"tokens"`
			NextCursor *string `json:"nextCursor"`
		}
		_, err := c.read(ctx, admin+"/tokens", page(0, cursor), maxObject, &answer)
		return answer.Tokens, deref(answer.NextCursor), err
	}) {
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

// DeleteToken ends a token.
func (c *Client) DeleteToken(ctx context.Context, id lessor.TokenID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: admin + "/tokens/" + id.String()}, nil)
	return err
}

// backupStart is how long a server may take to make the copy before its first byte: a large store is copied whole.
const backupStart = 10 * time.Minute

// Backup writes a consistent copy of the store to w and returns its size. After an error what was written is not a
// copy.
func (c *Client) Backup(ctx context.Context, w io.Writer) (size int64, err error) {
	err = c.eachTry(ctx, true, func(base string) error {
		body, err := c.stream(ctx, base, call{method: http.MethodGet, path: admin + "/backup", hold: backupStart}, nil)
		if err != nil {
			return err
		}
		defer body.Close()
		size, err = io.Copy(w, body)
		if err != nil {
			return fmt.Errorf("copy the backup: %w", err) // not repeated: part of it is written
		}
		return nil
	})
	return size, err
}

// Doctor asks the server to look at its own health.
func (c *Client) Doctor(ctx context.Context) ([]Finding, error) {
	var answer struct {
		Findings []Finding `json:"findings"`
	}
	_, err := c.read(ctx, admin+"/doctor", nil, maxObject, &answer)
	return answer.Findings, err
}
