package token

import (
	"net/netip"
	"sync"
	"time"

	"lessor"
)

// The limits of wrong tokens.
const (
	maxGuesses  = 20 // a minute and address: a person's mistakes, and a program that was just given a new token
	guessWindow = time.Minute
	maxGuessers = 10_000 // addresses that are remembered; then the oldest is forgotten
)

// guesses counts wrong tokens by the address that they came from.
type guesses struct {
	mu   sync.Mutex
	from map[netip.Addr]guesser
	line []guesser // in the order of since; what was counted anew stands in it twice
}

type guesser struct {
	addr  netip.Addr
	since time.Time
	wrong int
}

var errGuessed = &lessor.Error{Code: lessor.CodeUnauthenticated, Detail: "the token is not valid"}

// Wrong counts a wrong token and returns its refusal: 401, or 429 after 20 in a minute. Callers with a valid token are
// not affected by wrong ones from their address.
func (b *Book) Wrong(from netip.Addr, now time.Time) error {
	if wait := b.guesses.count(from, now); wait > 0 {
		return &lessor.Error{
			Code: lessor.CodeRateLimited, Detail: "too many wrong tokens came from this address",
			RetryAfter: wait,
		}
	}
	return errGuessed
}

// count returns how long the address must wait, 0 while it need not.
func (g *guesses) count(from netip.Addr, now time.Time) time.Duration {
	if from.Is6() && !from.Is4In6() {
		if network, err := from.WithZone("").Prefix(64); err == nil {
			from = network.Addr() // the owner of one address has the whole network
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	one, known := g.from[from]
	if !known || now.Sub(one.since) >= guessWindow {
		one = guesser{addr: from, since: now}
		g.forget(now)
		g.line = append(g.line, one)
	}
	one.wrong++
	if g.from == nil {
		g.from = map[netip.Addr]guesser{}
	}
	g.from[from] = one
	if one.wrong <= maxGuesses {
		return 0
	}
	return guessWindow - now.Sub(one.since)
}

// forget drops those whose minute is over, and makes room for one more.
func (g *guesses) forget(now time.Time) {
	n := 0
	for n < len(g.line) && (len(g.line)-n >= maxGuessers || now.Sub(g.line[n].since) >= guessWindow) {
		if gone := g.line[n]; g.from[gone.addr].since.Equal(gone.since) {
			delete(g.from, gone.addr)
		}
		n++
	}
	g.line = g.line[n:]
}
