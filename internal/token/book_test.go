package token

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lessor"
	"lessor/internal/scheduler"
)

func issue(t *testing.T, a Ask, now lessor.Instant) (scheduler.Token, string) {
	t.Helper()
	tok, secret, err := Issue(a, now)
	if err != nil {
		t.Fatalf("issue: %v", err)
	}
	return tok, secret
}

func TestSecretIsPrefixedAndHas256Bits(t *testing.T) {
	s := NewSecret()
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(s, "lsr_"))
	if err != nil || !strings.HasPrefix(s, "lsr_") || len(raw) != 32 {
		t.Fatalf("secret %q: %d bytes, %v; want lsr_ and 32 bytes in base64url", s, len(raw), err)
	}
	if NewSecret() == s {
		t.Fatal("two secrets are equal")
	}
}

func TestBookFindsTokensUntilTheyExpireOrGo(t *testing.T) {
	now := lessor.Instant(1_000_000)
	tok, secret := issue(t, Ask{Role: new("worker"), ExpiresInSeconds: new(int64(60))}, now)
	b := NewBook(func(context.Context) ([]scheduler.Token, error) { return []scheduler.Token{tok}, nil })
	if b.Loaded() {
		t.Fatal("a book that was never filled says it is loaded")
	}
	if err := b.Refresh(t.Context()); err != nil || !b.Loaded() {
		t.Fatalf("refresh: %v, loaded %v", err, b.Loaded())
	}
	for _, tt := range []struct {
		name, secret string
		now          lessor.Instant
		want         bool
	}{
		{"fresh", secret, now, true},
		{"last millisecond", secret, now + 59_999, true},
		{"expired", secret, now + 60_000, false},
		{"other secret", NewSecret(), now, false},
		{"empty", "", now, false},
		{"cut", secret[:len(secret)-1], now, false},
	} {
		if _, ok := b.Find(tt.secret, tt.now); ok != tt.want {
			t.Errorf("%s: found %v, want %v", tt.name, ok, tt.want)
		}
	}
	b.Remove(tok.ID)
	if _, ok := b.Find(secret, now); ok {
		t.Error("a removed token is still found")
	}
}

// TestTokenIsComparedWhole looks for a token by a secret whose hash begins like that of a valid one.
func TestTokenIsComparedWhole(t *testing.T) {
	tok, secret := issue(t, Ask{Role: new("worker")}, 1)
	b := NewBook(nil)
	b.Put(tok)
	guess := secret
	for i := 0; guess == secret || Hash(guess)[0] != tok.Hash[0]; i++ {
		guess = fmt.Sprint(secret, i)
	}
	if _, ok := b.Find(guess, 1); ok {
		t.Error("a secret whose hash has the first byte of a token's is taken for the token")
	}
}

func TestBookCountsTenantBoundTokens(t *testing.T) {
	tok, _ := issue(t, Ask{Role: new("viewer"), TenantID: new("018f0000-0000-7000-8000-000000000001")}, 1)
	b := NewBook(func(context.Context) ([]scheduler.Token, error) { return nil, nil })
	var notified []bool
	b.Notify(func(bound bool) { notified = append(notified, bound) })
	if b.Put(tok); !b.Bound() || b.Len() != 1 {
		t.Errorf("after Put: bound %v, len %d", b.Bound(), b.Len())
	}
	if b.Put(tok); b.Len() != 1 {
		t.Errorf("the same token twice counts as %d", b.Len())
	}
	if b.Remove(tok.ID); b.Bound() || b.Len() != 0 {
		t.Errorf("after Remove: bound %v, len %d", b.Bound(), b.Len())
	}
	b.Put(tok) // another node deletes it
	if err := b.Refresh(t.Context()); err != nil || !slices.Equal(notified, []bool{true, false, true, false}) {
		t.Errorf("notified %v (%v), want each change once", notified, err)
	}
}

// A refresh that read the store before a token was deleted must not bring the token back.
func TestRefreshDoesNotUndoAChangeMadeMeanwhile(t *testing.T) {
	tok, secret := issue(t, Ask{Role: new("admin")}, 1)
	stored := []scheduler.Token{tok}
	var b *Book
	calls := 0
	b = NewBook(func(context.Context) ([]scheduler.Token, error) {
		read := stored
		if calls++; calls == 2 { // the token is deleted between the read and its use
			stored = nil
			b.Remove(tok.ID)
		}
		return read, nil
	})
	for range 2 {
		if err := b.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := b.Find(secret, 1); ok || calls != 3 {
		t.Errorf("found %v after %d reads; want the stale read repeated and the token gone", ok, calls)
	}
}

func TestRefreshKeepsTheBookWhenTheStoreFails(t *testing.T) {
	tok, secret := issue(t, Ask{Role: new("admin")}, 1)
	fail := false
	b := NewBook(func(context.Context) ([]scheduler.Token, error) {
		if fail {
			return nil, errors.New("gone")
		}
		return []scheduler.Token{tok}, nil
	})
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	fail = true
	if err := b.Refresh(t.Context()); err == nil {
		t.Error("a failed load is not reported")
	}
	if _, ok := b.Find(secret, 1); !ok {
		t.Error("the book forgot its tokens when the store failed")
	}
}

func TestIssueRefusesWhatCannotBe(t *testing.T) {
	tenant := new("018f0000-0000-7000-8000-000000000001")
	for _, tt := range []struct {
		name, field string
		ask         Ask
	}{
		{"unknown role", "role", Ask{Role: new("root")}},
		{"empty role", "role", Ask{Role: new("")}},
		{"empty name", "name", Ask{Role: new("viewer"), Name: new("")}},
		{"name of the scheduler", "name", Ask{Role: new("worker"), Name: new("scheduler")}},
		{"name with a slash", "name", Ask{Role: new("worker"), Name: new("ci/w1")}},
		{"long name", "name", Ask{Role: new("viewer"), Name: new(strings.Repeat("é", 201))}},
		{"no time", "expiresInSeconds", Ask{Role: new("viewer"), ExpiresInSeconds: new(int64(0))}},
		{"endless time", "expiresInSeconds", Ask{Role: new("viewer"), ExpiresInSeconds: new(int64(1) << 62)}},
		{"tenant is no uuid", "tenantId", Ask{Role: new("viewer"), TenantID: new("acme")}},
		{"nil tenant", "tenantId", Ask{Role: new("viewer"), TenantID: new("00000000-0000-0000-0000-000000000000")}},
		{"admin of a tenant", "tenantId", Ask{Role: new("admin"), TenantID: tenant}},
	} {
		_, secret, err := Issue(tt.ask, 1)
		var e *lessor.Error
		if !errors.As(err, &e) || e.Code != lessor.CodeInvalidValue || len(e.Fields) != 1 ||
			e.Fields[0].Field != tt.field || secret != "" {
			t.Errorf("%s: got %v, want invalid_value for %s", tt.name, err, tt.field)
		}
	}
	tok, _ := issue(t, Ask{
		Role: new("operator"), TenantID: tenant, Name: new(strings.Repeat("é", 200)),
		ExpiresInSeconds: new(int64(1)),
	}, 5000)
	if tok.ExpiresAt != 6000 || tok.Tenant == nil || tok.ID.IsZero() {
		t.Errorf("issued %+v", tok)
	}
}
