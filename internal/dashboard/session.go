package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

const (
	sessionLife = 12 * time.Hour // a working day
	cookieName  = "lessor_session"
	// A code is for the person who just started the server.
	codeLife = 10 * time.Minute
	maxCodes = 16
)

// ticket is the content of a session's cookie: the id of a token, and a secret. The store knows the hash of both. A
// session ends with its token; a restart of the server does not end it.
type ticket struct {
	token  lessor.TokenID
	secret [32]byte
}

func newTicket(token lessor.TokenID) ticket {
	t := ticket{token: token}
	rand.Read(t.secret[:])
	return t
}

func (t ticket) String() string {
	return base64.RawURLEncoding.EncodeToString(append(t.token.UUID[:], t.secret[:]...))
}

func parseTicket(s string) (t ticket, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(raw) != len(t.token.UUID)+len(t.secret) {
		return ticket{}, false
	}
	copy(t.secret[:], raw[copy(t.token.UUID[:], raw):])
	return t, true
}

// key returns the hash that the store knows. It includes the token, so that a secret is useless with another token's
// id.
func (t ticket) key() [32]byte { return sha256.Sum256(append(t.token.UUID[:], t.secret[:]...)) }

const (
	// sessionFresh is how long a session is valid without asking the store, and so the delay of a logout on another
	// node.
	sessionFresh = 4 * time.Second
	maxSeen      = 1000 // sessions that are remembered
)

// sessions remembers which sessions the store knew recently, because an open page asks every second.
type sessions struct {
	load func(context.Context, lessor.TokenID, [32]byte) (lessor.Instant, bool, error)
	mu   sync.Mutex
	seen map[[32]byte]seenSession
}

type seenSession struct {
	until lessor.Instant
	at    time.Time
}

// find reports whether a session is valid. If the store cannot be reached, a remembered session stays valid.
func (s *sessions) find(ctx context.Context, t ticket, now time.Time) (bool, error) {
	key := t.key()
	s.mu.Lock()
	known, ok := s.seen[key]
	s.mu.Unlock()
	if !ok || now.Sub(known.at) >= sessionFresh {
		until, found, err := s.load(ctx, t.token, key)
		switch {
		case err != nil && !ok:
			return false, err
		case err == nil && !found:
			s.forget(t)
			return false, nil
		case err == nil:
			known = seenSession{until, now}
			s.remember(key, known)
		}
	}
	return lessor.At(now) < known.until, nil
}

func (s *sessions) remember(key [32]byte, one seenSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) >= maxSeen {
		s.seen = map[[32]byte]seenSession{}
	}
	s.seen[key] = one
}

func (s *sessions) forget(t ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, t.key())
}

// session returns the token of the visitor's session, nil if there is none. given says that the request had a cookie.
func (v *visit) session() (held *scheduler.Token, given bool, err error) {
	cookie := v.cookie()
	if cookie == "" {
		return nil, false, nil
	}
	t, ok := parseTicket(cookie)
	if !ok {
		return nil, true, nil
	}
	now := time.Now()
	token, ok := v.tokens.ByID(t.token, lessor.At(now))
	if !ok {
		return nil, true, nil
	}
	if ok, err := v.sessions.find(v.r.Context(), t, now); !ok {
		return nil, true, err
	}
	return &token, true, nil
}

// cookie returns the visitor's session cookie, "" if there is none.
func (v *visit) cookie() string {
	c, err := v.r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie sets a cookie that scripts and other sites cannot use; an empty value removes it.
func (v *visit) setCookie(name, value string, life time.Duration) {
	c := &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: v.visitor.Secure,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.w, c)
}
