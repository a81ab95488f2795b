package token

import (
	"net/netip"
	"testing"
	"time"
)

func TestWrongTokensAreCountedByAddress(t *testing.T) {
	var g guesses
	now := time.Now()
	guesser, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for n := range maxGuesses {
		if wait := g.count(guesser, now.Add(time.Duration(n)*time.Second)); wait != 0 {
			t.Fatalf("wrong token %d waits %v", n+1, wait)
		}
	}
	for _, tt := range []struct {
		from netip.Addr
		at   time.Duration
		want time.Duration
	}{
		{guesser, 30 * time.Second, 30 * time.Second},
		{other, 30 * time.Second, 0},
		{netip.Addr{}, 30 * time.Second, 0},
		{guesser, guessWindow - 1, 1},
		{guesser, guessWindow, 0},
		{guesser, guessWindow + 1, 0},
	} {
		if got := g.count(tt.from, now.Add(tt.at)); got != tt.want {
			t.Errorf("%v after %v waits %v, want %v", tt.from, tt.at, got, tt.want)
		}
	}
}

func TestNetworksGuessTogether(t *testing.T) {
	var g guesses
	now, addr := time.Now(), netip.MustParseAddr("2001:db8::1")
	for range maxGuesses {
		addr = addr.Next()
		g.count(addr, now)
	}
	if g.count(addr.Next(), now) == 0 || g.count(netip.MustParseAddr("2001:db8:0:1::1"), now) != 0 {
		t.Error("the addresses of one network of 64 bits do not count together, or those of another do")
	}
}

func TestGuessersAreBounded(t *testing.T) {
	var g guesses
	now, addr := time.Now(), netip.MustParseAddr("10.0.0.0")
	for range 2 * maxGuessers {
		addr = addr.Next()
		g.count(addr, now)
	}
	if len(g.from) != maxGuessers || len(g.line) != maxGuessers {
		t.Errorf("%d addresses are remembered in %d places, want %d", len(g.from), len(g.line), maxGuessers)
	}
	if g.count(addr, now.Add(guessWindow)); len(g.from) != 1 || len(g.line) != 1 {
		t.Errorf("a minute later %d addresses are remembered in %d places, want 1", len(g.from), len(g.line))
	}
}
