package schema

import (
	"crypto/sha256"
	"sync"
)

// maxBook is how many schemas a Book keeps: as many handlers as a server is likely to have, at a few hundred KiB for
// the largest.
const maxBook = 200

// Book keeps compiled schemas by their content, so that a schema is compiled once and not at each check. The zero value
// is empty and may be used by many at once.
type Book struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*Schema
}

// Compile returns the schema, compiled now or before.
func (b *Book) Compile(raw []byte) (*Schema, error) {
	key := sha256.Sum256(raw)
	b.mu.Lock()
	s := b.known[key]
	b.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := Compile(raw)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) >= maxBook {
		b.known = map[[sha256.Size]byte]*Schema{} // who is still used comes back by itself
	}
	b.known[key] = s
	return s, nil
}
