package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// The limits of a token.
const (
	maxName      = 200
	maxExpiresIn = 10 * 366 * 24 * 60 * 60 // seconds; longer is a mistake in units, and "never" can be said
)

// Ask is what a new token shall be. Only Role is required; what is nil is "none" or "never".
type Ask struct {
	Role             *string `json:"role"`
	TenantID         *string `json:"tenantId,omitempty"`
	ExpiresInSeconds *int64  `json:"expiresInSeconds,omitempty"`
	Name             *string `json:"name,omitempty"`
}

// Issue makes a token as asked and returns it with its secret, or refuses.
func Issue(a Ask, now lessor.Instant) (scheduler.Token, string, error) {
	var wrong []lessor.FieldError
	fail := func(field, format string, args ...any) {
		wrong = append(wrong, lessor.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	secret := NewSecret()
	t := scheduler.Token{
		ID: lessor.TokenID{UUID: lessor.UUID(uuid.Must(uuid.NewV7()))}, Hash: Hash(secret),
		CreatedAt: now,
	}
	role, ok := parseRole(*a.Role)
	if !ok {
		fail("role", "must be viewer, submitter, worker, operator or admin")
	}
	t.Role = string(role)
	if a.Name != nil {
		t.Name = *a.Name
		if n := utf8.RuneCountInString(t.Name); n < 1 || n > maxName {
			fail("name", "must be 1 to %d characters long, not %d", maxName, n)
		} else if !rules.Nameable(t.Name) || isServers(t.Name) {
			fail("name", "must not hold a slash, nor be the name of a part of the server: "+
				"the record could not tell it from another actor")
		}
	}
	if s := a.ExpiresInSeconds; s != nil {
		if *s < 1 || *s > maxExpiresIn {
			fail("expiresInSeconds", "must be 1 to %d, not %d", maxExpiresIn, *s)
		}
		t.ExpiresAt = now + lessor.Instant(*s)*1000
	}
	if a.TenantID != nil {
		id, err := lessor.ParseUUID(*a.TenantID)
		switch {
		case err != nil:
			fail("tenantId", "%v", err)
		case id.IsZero():
			fail("tenantId", "the nil uuid is the tenant of jobs without one; a token cannot be bound to it")
		case role == Admin:
			fail("tenantId", "an admin token cannot be bound to a tenant: administration is for all of them")
		}
		t.Tenant = &lessor.TenantID{UUID: id}
	}
	if len(wrong) > 0 {
		return scheduler.Token{}, "", &lessor.Error{
			Code: lessor.CodeInvalidValue, Detail: "a value is not allowed",
			Fields: wrong,
		}
	}
	return t, secret, nil
}

// AdminName is the name of the server's own admin token. Where several nodes have one each, theirs begin with it.
const AdminName = "admin"

func isServers(name string) bool {
	return name == AdminName || strings.HasPrefix(name, AdminName+" of ")
}

// prefix makes a token recognisable to people and to scanners that look for leaked secrets.
const prefix = "lsr_"

// secretBytes is the randomness of a token: 256 bits, so that its hash needs neither salt nor stretching.
const secretBytes = 32

// NewSecret makes a token. It is shown to its holder once; the store keeps only Hash of it.
func NewSecret() string {
	var b [secretBytes]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash is how a token is stored and looked up.
func Hash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }
