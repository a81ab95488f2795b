// Package token decides access: roles, their scopes, and the book of valid tokens.
//
// A token is 256 random bits; the store and the book know only its hash. The book is a copy in memory of the tokens in
// the store: changes made through this process show at once (Put, Remove), those of other nodes at the next Refresh.
// Requests that are kept open end with their token (Hold); wrong tokens are counted (Wrong). An empty book accepts no
// token.
//
// httpapi calls it, and has the loopback rule, which concerns connections and not tokens.
package token

import (
	"context"
	"crypto/subtle"
	"sync"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// refreshEvery bounds how long an expired token, or one that another node deleted, still keeps a request open here. 5 s
// are promised, and loading takes time too.
const refreshEvery = 2 * time.Second

// Book holds the valid tokens.
type Book struct {
	load func(context.Context) ([]scheduler.Token, error)

	mu      sync.RWMutex
	loaded  bool
	changes int // counts Put and Remove, so that a Refresh that overlaps one is discarded
	byHash  map[[32]byte]scheduler.Token
	byID    map[lessor.TokenID][32]byte
	bound   int // tokens that are bound to a tenant
	notify  func(bound bool)

	holdMu sync.Mutex
	holds  map[*hold]struct{} // requests that are kept open

	guesses guesses
}

// NewBook returns an empty book that is filled from load, usually (*scheduler.Scheduler).Tokens.
func NewBook(load func(context.Context) ([]scheduler.Token, error)) *Book {
	return &Book{load: load, byHash: map[[32]byte]scheduler.Token{}, byID: map[lessor.TokenID][32]byte{}}
}

// Notify has fn called when the first token that is restricted to a tenant appears, and when the last is gone. Call it
// before the book is shared.
func (b *Book) Notify(fn func(bound bool)) { b.notify = fn }

// change runs fn on the book's content and calls the function of Notify if needed.
func (b *Book) change(fn func()) {
	b.mu.Lock()
	before := b.bound > 0
	fn()
	after := b.bound > 0
	b.mu.Unlock()
	if b.notify != nil && before != after {
		b.notify(after)
	}
	b.release(lessor.At(time.Now()))
}

// Refresh reads the tokens from the store. On an error the book stays as it was.
func (b *Book) Refresh(ctx context.Context) error {
	for {
		b.mu.RLock()
		before := b.changes
		b.mu.RUnlock()
		tokens, err := b.load(ctx)
		if err != nil {
			return err
		}
		if b.fill(tokens, before) {
			return nil
		}
	}
}

// fill replaces the book's content, unless it changed since the tokens were read.
func (b *Book) fill(tokens []scheduler.Token, before int) bool {
	byHash, byID, bound := make(map[[32]byte]scheduler.Token, len(tokens)), make(map[lessor.TokenID][32]byte,
		len(tokens)), 0
	for _, t := range tokens {
		byHash[t.Hash], byID[t.ID] = t, t.Hash
		if t.Tenant != nil {
			bound++
		}
	}
	filled := false
	b.change(func() {
		if filled = b.changes == before; filled {
			b.byHash, b.byID, b.bound, b.loaded = byHash, byID, bound, true
		}
	})
	return filled
}

// Run refreshes the book until ctx is done. Errors go to report; the book keeps what it knew.
func (b *Book) Run(ctx context.Context, report func(error)) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := b.Refresh(ctx); err != nil && ctx.Err() == nil {
			report(err)
			b.release(lessor.At(time.Now())) // tokens expire also while the store is down
		}
	}
}

// Put adds a token that was just saved.
func (b *Book) Put(t scheduler.Token) {
	b.change(func() {
		b.changes++
		if _, known := b.byHash[t.Hash]; !known && t.Tenant != nil {
			b.bound++
		}
		b.byHash[t.Hash], b.byID[t.ID] = t, t.Hash
	})
}

// Remove forgets a token that was just deleted.
func (b *Book) Remove(id lessor.TokenID) {
	b.change(func() {
		b.changes++
		hash, ok := b.byID[id]
		if !ok {
			return
		}
		if b.byHash[hash].Tenant != nil {
			b.bound--
		}
		delete(b.byHash, hash)
		delete(b.byID, id)
	})
}

// Find returns the valid token with this secret. The time of looking up a hash tells nothing about other secrets; the
// comparison in constant time is a second protection.
func (b *Book) Find(secret string, now lessor.Instant) (scheduler.Token, bool) {
	return b.Valid(Hash(secret), now)
}

// Valid returns the token with this hash, if it still is one: what Find found before may have been deleted, or have
// expired.
func (b *Book) Valid(hash [32]byte, now lessor.Instant) (scheduler.Token, bool) {
	b.mu.RLock()
	t, ok := b.byHash[hash]
	b.mu.RUnlock()
	if !ok || subtle.ConstantTimeCompare(t.Hash[:], hash[:]) != 1 {
		return scheduler.Token{}, false
	}
	if t.ExpiresAt != 0 && now >= t.ExpiresAt {
		return scheduler.Token{}, false
	}
	return t, true
}

// ByID returns the token with this id, if it is valid.
func (b *Book) ByID(id lessor.TokenID, now lessor.Instant) (scheduler.Token, bool) {
	b.mu.RLock()
	hash, ok := b.byID[id]
	b.mu.RUnlock()
	if !ok {
		return scheduler.Token{}, false
	}
	return b.Valid(hash, now)
}

// Loaded reports whether the book was ever filled.
func (b *Book) Loaded() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.loaded
}

// Bound reports whether any token, expired or not, is restricted to a tenant. Then every caller needs a token.
func (b *Book) Bound() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bound > 0
}

// Len is the number of tokens.
func (b *Book) Len() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.byHash)
}
