package client

import "sync/atomic"

// servers is the list of servers and the one that is in use. All calls of a client share it, so that one call's
// discovery that a server is gone spares the others the same try.
type servers struct {
	urls []string
	at   atomic.Uint32
}

// current returns the server in use and its place in the list.
func (s *servers) current() (place uint32, base string) {
	place = s.at.Load()
	return place, s.urls[place]
}

// leave goes on to the server after the one at place, unless another call already left it.
func (s *servers) leave(place uint32) {
	s.at.CompareAndSwap(place, (place+1)%uint32(len(s.urls)))
}

// tries is how often one call is tried: three rounds, at most 12 tries, so that a call ends within seconds also with a
// long list.
func (s *servers) tries() int { return min(3*len(s.urls), max(12, len(s.urls))) }
