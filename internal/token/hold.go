package token

import (
	"time"

	"lessor"
)

// hold is a request that is kept open for as long as its caller may be let in.
type hold struct {
	hash      [32]byte
	tokenless bool
	end       func()
}

// Hold calls end when the token with this hash is deleted or expires; Tokenless is the hash of those who have none, who are no
// longer let in once a token is bound to a tenant. The caller must call forget.
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

// Tokenless stands for the token of callers who have none: the hash of no token.
var Tokenless [32]byte

// lets reports whether the caller of h may still be let in.
func (b *Book) lets(h *hold, now lessor.Instant) bool {
	if h.tokenless {
		return !b.Bound()
	}
	_, ok := b.Valid(h.hash, now)
	return ok
}

// release ends the holds of those who are no longer let in.
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
