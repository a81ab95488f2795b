package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// prefix makes a token recognisable to people and to scanners that look for leaked secrets.
const prefix = "lsr_"

// secretBytes is the randomness of a token: 256 bits, so that its hash needs neither salt nor stretching.
const secretBytes = 32

// NewSecret makes a token. It is shown to its holder once; the store keeps only Hash of it.
func NewSecret() string {
	var b [secretBytes]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash is how a token is stored and looked up.
func Hash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }
