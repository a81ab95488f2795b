package token

import (
	"time"

	"lessor"
)

// hold is a request that stays open as long as its caller has access.
type hold struct {
	hash      [32]byte
	tokenless bool
	end       func()
}

// Hold calls end when the token with this hash is deleted or expires. Tokenless is the hash of callers without a token,
// who lose access when a token is restricted to a tenant. Callers of Hold must call forget.
func (b *Book) Hold(hash [32]byte, end func()) (forget func()) {
	h := &hold{hash: hash, tokenless: hash == Tokenless, end: end}
	b.holdMu.Lock()
	if b.holds == nil {
		b.holds = map[*hold]struct{}{}
	}
	b.holds[h] = struct{}{}
	b.holdMu.Unlock()
	if !b.lets(h, lessor.At(time.Now())) { // the book changed before it knew of h
		end()
	}
	return func() {
		b.holdMu.Lock()
		defer b.holdMu.Unlock()
		delete(b.holds, h)
	}
}

// Tokenless stands for callers without a token. It is the hash of no token.
var Tokenless [32]byte

// lets reports whether the caller of h still has access.
func (b *Book) lets(h *hold, now lessor.Instant) bool {
	if h.tokenless {
		return !b.Bound()
	}
	_, ok := b.Valid(h.hash, now)
	return ok
}

// release ends the holds of callers that have lost access.
func (b *Book) release(now lessor.Instant) {
	var over []*hold
	b.holdMu.Lock()
	for h := range b.holds {
		if !b.lets(h, now) {
			over = append(over, h)
			delete(b.holds, h)
		}
	}
	b.holdMu.Unlock()
	for _, h := range over {
		h.end()
	}
}
