package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"lessor"
)

// TokenRequest describes a token to create.
type TokenRequest struct {
	// Role is viewer, submitter, worker, operator or admin.
	Role string
	// Tenant restricts the token to one tenant; nil means all tenants.
	Tenant *lessor.TenantID
	// Name appears in records of what the token was used for.
	Name string
	// ExpiresIn is the life of the token, in whole seconds. Zero means that it does not expire.
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

// CreateToken creates an access token. The call is not repeated, because a repetition would create a second token.
func (c *Client) CreateToken(ctx context.Context, r TokenRequest) (Token, error) {
	return send[Token](ctx, c, http.MethodPost, admin+"/tokens", struct {
		Role             string           `json:"role"`
		TenantID         *lessor.TenantID `json:"tenantId,omitempty"`
		ExpiresInSeconds int64            `json:"expiresInSeconds,omitempty"`
		Name             string           `json:"name,omitempty"`
	}{r.Role, r.Tenant, int64((r.ExpiresIn + time.Second - 1) / time.Second), r.Name})
}

// Tokens returns all tokens, newest first.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	return collect[Token](ctx, c, admin+"/tokens", "tokens")
}

// DeleteToken ends a token.
func (c *Client) DeleteToken(ctx context.Context, id lessor.TokenID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: admin + "/tokens/" + id.String()}, nil)
	return err
}

// backupStart is how long a server may copy its store before it sends the first byte.
const backupStart = 10 * time.Minute

// Backup writes a consistent copy of the store to w and returns its size. After an error w holds no usable copy.
func (c *Client) Backup(ctx context.Context, w io.Writer) (size int64, err error) {
	err = c.eachTry(ctx, true, func(base string) error {
		body, _, err := c.open(ctx, base, call{method: http.MethodGet, path: admin + "/backup", hold: backupStart}, nil)
		if err != nil {
			return err
		}
		defer body.Close()
		size, err = io.Copy(w, body)
		if err != nil {
			return fmt.Errorf("copy the backup: %w", err) // not repeated: w holds a part of the copy
		}
		return nil
	})
	return size, err
}

// Finding is one line of a server's health check.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Doctor makes the server check its own health.
func (c *Client) Doctor(ctx context.Context) ([]Finding, error) {
	answer, err := get[struct {
		Findings []Finding `json:"findings"`
	}](ctx, c, admin+"/doctor", nil, maxObject)
	return answer.Findings, err
}

type logLevel struct {
	Level string `json:"level"`
}

// LogLevel returns the lowest level that the server logs. It needs an admin token.
func (c *Client) LogLevel(ctx context.Context) (string, error) {
	answer, err := get[logLevel](ctx, c, admin+"/log-level", nil, maxObject)
	return answer.Level, err
}

// SetLogLevel changes the lowest level that the answering node logs, until it stops: debug, info, warn or error.
func (c *Client) SetLogLevel(ctx context.Context, level string) (string, error) {
	var answer logLevel
	_, err := c.do(ctx, call{
		method: http.MethodPut, path: admin + "/log-level", body: logLevel{level}, safe: true,
	}, &answer)
	return answer.Level, err
}

// Ready returns nil when a server answers that it is ready.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/health/ready", safe: true}, nil)
	return err
}

// Clock returns the time of the server, to the second. It is for finding clocks that are wrong; no decision about a
// lease depends on it.
func (c *Client) Clock(ctx context.Context) (time.Time, error) {
	var at time.Time
	err := c.eachTry(ctx, true, func(base string) error {
		body, header, err := c.open(ctx, base, call{method: http.MethodGet, path: "/health/live"}, nil)
		if err != nil {
			return err
		}
		defer body.Close()
		if at, err = http.ParseTime(header.Get("Date")); err != nil {
			return fmt.Errorf("read the server's Date: %w", err)
		}
		return nil
	})
	return at, err
}
