package rules

import (
	"slices"

	"lessor"
)

// MaxSessions bounds the sessions of one token.
const MaxSessions = 20

// Session is a browser that is logged in with a token. Key is the hash of the secret in its cookie.
type Session struct {
	Key   [32]byte
	Until lessor.Instant
}

// BeginSession adds a session to those of a token, oldest first. It drops sessions that are over, and the oldest beyond
// MaxSessions.
func BeginSession(all []Session, s Session, now lessor.Instant) []Session {
	kept := slices.DeleteFunc(slices.Clone(all), func(s Session) bool { return now >= s.Until })
	kept = append(kept, s)
	return kept[max(0, len(kept)-MaxSessions):]
}

// EndSession removes a session.
func EndSession(all []Session, key [32]byte) []Session {
	return slices.DeleteFunc(slices.Clone(all), func(s Session) bool { return s.Key == key })
}
