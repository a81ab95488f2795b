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

// eventIDs seals places in the stream of all records, so that an id does not tell how many records others have. The key is this
// server's for its life: an id of another life, or of another server, cannot be opened.
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

// readerIDs are the ids that one reader gets, and that nobody else can use.
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

// seal returns the id of a place: one block, of the reader and the place.
func (r readerIDs) seal(place uint64) string {
	var b [aes.BlockSize]byte
	copy(b[:], r.reader[:])
	binary.BigEndian.PutUint64(b[8:], place)
	r.key.Encrypt(b[:], b[:])
	return hex.EncodeToString(b[:])
}

// open returns the place of an id: 0 for none, scheduler.AfterUnknown for one that is not of this reader and this life.
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
