package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"
)

// codes are one-time links: each stands for a token, by its hash, once.
type codes struct {
	mu  sync.Mutex
	all map[[32]byte]code
}

type code struct {
	token [32]byte
	until time.Time
}

// make returns a new code, or "" if there are too many that nobody used.
func (c *codes) make(token [32]byte, now time.Time) string {
	secret := random()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[[32]byte]code{}
	}
	for hash, one := range c.all {
		if now.After(one.until) {
			delete(c.all, hash)
		}
	}
	if len(c.all) >= maxCodes {
		return ""
	}
	c.all[sha256.Sum256([]byte(secret))] = code{token, now.Add(codeLife)}
	return secret
}

// use ends a code and returns its token.
func (c *codes) use(secret string, now time.Time) (token [32]byte, ok bool) {
	hash := sha256.Sum256([]byte(secret))
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
