package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"lessor/internal/scheduler"
)

// eventIDs encrypts places in the stream of records, so that an id does not tell how many records other tenants have.
// The key lives as long as the process: ids of an earlier process or of another server cannot be opened.
type eventIDs struct{ key cipher.Block }

func newEventIDs() eventIDs {
	key := make([]byte, 16)
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	return eventIDs{block}
}

// readerIDs makes the ids of one reader. Another reader cannot use them.
type readerIDs struct {
	eventIDs
	reader [8]byte
}

func (e eventIDs) of(c scheduler.Caller) readerIDs {
	who := []byte(c.Actor)
	if c.Tenant != nil {
		who = append(c.Tenant.UUID[:], who...)
	}
	sum := sha256.Sum256(who)
	return readerIDs{e, [8]byte(sum[:8])}
}

// seal returns the id of a place: one encrypted block of the reader and the place.
func (r readerIDs) seal(place uint64) string {
	var b [aes.BlockSize]byte
	copy(b[:], r.reader[:])
	binary.BigEndian.PutUint64(b[8:], place)
	r.key.Encrypt(b[:], b[:])
	return hex.EncodeToString(b[:])
}

// open returns the place of an id: 0 for no id, scheduler.AfterUnknown for one of another reader or process.
func (r readerIDs) open(id string) uint64 {
	if id == "" {
		return 0
	}
	b, err := hex.DecodeString(id)
	if err != nil || len(b) != aes.BlockSize {
		return scheduler.AfterUnknown
	}
	r.key.Decrypt(b, b)
	if [8]byte(b[:8]) != r.reader {
		return scheduler.AfterUnknown
	}
	return binary.BigEndian.Uint64(b[8:])
}
