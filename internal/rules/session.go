package rules

import (
	"slices"

	"lessor"
)

// MaxSessions is how many people, or browsers, may be logged in with one token at once.
const MaxSessions = 20

// Session is somebody who is logged in with a token: the hash of the secret that their cookie has, and until when.
type Session struct {
	Key   [32]byte
	Until lessor.Instant
}

// BeginSession adds a session to those of a token, the oldest first. Those that are over go, and of too many the oldest: who logs in
// often ends sessions of its own token only.
func BeginSession(all []Session, s Session, now lessor.Instant) []Session {
	kept := slices.DeleteFunc(slices.Clone(all), func(s Session) bool { return now >= s.Until })
	kept = append(kept, s)
	return kept[max(0, len(kept)-MaxSessions):]
}

// EndSession takes a session out.
func EndSession(all []Session, key [32]byte) []Session {
	return slices.DeleteFunc(slices.Clone(all), func(s Session) bool { return s.Key == key })
}
