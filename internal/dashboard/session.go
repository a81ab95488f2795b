package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// Sessions last for a working day, and there are no more of them than this: then the oldest ends.
const (
	sessionLife = 12 * time.Hour
	maxSessions = 10_000
	cookieName  = "lessor_session"
	// A code is for the person who has just started the server.
	codeLife = 10 * time.Minute
	maxCodes = 16
)

// sessions are those who have logged in. The key is the hash of what their cookie says, the value names their token by its hash: a
// token that is deleted or expires ends its sessions.
type sessions struct {
	mu  sync.Mutex
	all map[[32]byte]session
}

type session struct {
	token [32]byte
	until time.Time
}

// begin starts a session and returns what its cookie says.
func (s *sessions) begin(token [32]byte, now time.Time) string {
	secret := random()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[[32]byte]session{}
	}
	if len(s.all) >= maxSessions {
		s.drop(now)
	}
	s.all[sha256.Sum256([]byte(secret))] = session{token, now.Add(sessionLife)}
	return secret
}

// drop forgets the sessions that are over, or else the one that is over first.
func (s *sessions) drop(now time.Time) {
	var oldest [32]byte
	var until time.Time
	for id, one := range s.all {
		if now.After(one.until) {
			delete(s.all, id)
		} else if until.IsZero() || one.until.Before(until) {
			oldest, until = id, one.until
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, oldest)
	}
}

func (s *sessions) find(secret string, now time.Time) (token [32]byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[sha256.Sum256([]byte(secret))]
	return one.token, ok && now.Before(one.until)
}

func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(secret)))
}

// codes are one-time links: each stands for a token, once.
type codes struct {
	mu  sync.Mutex
	all map[[32]byte]session
}

// make returns a new code, or "" if there are too many that nobody used.
func (c *codes) make(token [32]byte, now time.Time) string {
	code := random()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[[32]byte]session{}
	}
	for hash, one := range c.all {
		if now.After(one.until) {
			delete(c.all, hash)
		}
	}
	if len(c.all) >= maxCodes {
		return ""
	}
	c.all[sha256.Sum256([]byte(code))] = session{token, now.Add(codeLife)}
	return code
}

// use ends a code and returns its token.
func (c *codes) use(code string, now time.Time) (token [32]byte, ok bool) {
	hash := sha256.Sum256([]byte(code))
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.all[hash]
	delete(c.all, hash)
	return one.token, ok && now.Before(one.until)
}

// random is 256 bits that nobody can guess.
func random() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// session returns the token of the visitor's session, nil if there is none.
func (v *visit) session() *scheduler.Token {
	cookie, err := v.r.Cookie(cookieName)
	if err != nil {
		return nil
	}
	now := time.Now()
	hash, ok := v.sessions.find(cookie.Value, now)
	if !ok {
		return nil
	}
	t, ok := v.tokens.Valid(hash, lessor.At(now))
	if !ok {
		return nil
	}
	return &t
}

// setCookie sets a cookie that scripts and other sites cannot use; an empty value ends it.
func (v *visit) setCookie(name, value string, life time.Duration) {
	c := &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: v.visitor.Secure,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.w, c)
}
