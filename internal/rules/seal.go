package rules

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"lessor"
)

// Seal hides the numbers of a store from those who see ids and cursors: whoever knows how many jobs there were learns about other
// tenants. It is made from a key that every node of one store has and nobody else.
type Seal struct {
	ids, cursors, jobs cipher.Block
}

// NewSeal returns the seal of a store with this key.
func NewSeal(key [32]byte) *Seal {
	return &Seal{ids: block(key, "lease id"), cursors: block(key, "cursor"), jobs: block(key, "job cursor")}
}

// block makes a cipher of the key for one use, so that what is sealed for one opens nothing of another.
func block(key [32]byte, use string) cipher.Block {
	k := sha256.Sum256(append(key[:], use...))
	b, err := aes.NewCipher(k[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	return b
}

const (
	// seqAt is where in a lease's id the seq of its job stands, in the 6 bytes that are left: enough for 30,000 jobs a second for 290
	// years. What stands before is random but for the 6 bits that make it a uuid.
	seqAt     = 10
	seqBytes  = 16 - seqAt
	versionAt = 6
	variantAt = 8
	// sealedVersion is that of random uuids; openVersion that of ids before seqs were sealed.
	sealedVersion = 4
	openVersion   = 7
)

// LeaseID makes the id of a lease of the job with this seq. random must be from a source that nobody can predict: the id is the key to
// the lease, and 74 bits of it are random.
func (s *Seal) LeaseID(seq int64, random [seqAt]byte) lessor.LeaseID {
	var id lessor.LeaseID
	copy(id.UUID[:], random[:])
	id.UUID[versionAt] = id.UUID[versionAt]&0x0f | sealedVersion<<4
	id.UUID[variantAt] = id.UUID[variantAt]&0x3f | 0x80
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(seq)^s.pad(id))
	copy(id.UUID[seqAt:], b[8-seqBytes:])
	return id
}

// Seq is the seq of the job that a lease is of. Of an id that LeaseID did not make it is any number.
func (s *Seal) Seq(id lessor.LeaseID) int64 {
	var b [8]byte
	copy(b[8-seqBytes:], id.UUID[seqAt:])
	seq := binary.BigEndian.Uint64(b[:])
	if id.UUID[versionAt]>>4 != openVersion {
		seq ^= s.pad(id)
	}
	return int64(seq)
}

// pad is what hides the seq in an id: it depends on the random part, which no other id has, and on the key.
func (s *Seal) pad(id lessor.LeaseID) uint64 {
	var b [aes.BlockSize]byte
	copy(b[:], id.UUID[:seqAt])
	s.ids.Encrypt(b[:], b[:])
	return binary.BigEndian.Uint64(b[:]) >> (8 * (8 - seqBytes))
}

// Cursor returns two numbers, of 48 bits each, as a text that tells nobody else anything.
func (s *Seal) Cursor(a, b int64) string {
	var block [aes.BlockSize]byte // the last four bytes stay 0, by which a cursor that was made up is known
	binary.BigEndian.PutUint64(block[:], uint64(a)<<16)
	binary.BigEndian.PutUint64(block[6:], uint64(b)<<16)
	s.cursors.Encrypt(block[:], block[:])
	return base64.RawURLEncoding.EncodeToString(block[:])
}

// OpenCursor returns what Cursor was given.
func (s *Seal) OpenCursor(text string) (a, b int64, err error) {
	block, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(block) != aes.BlockSize {
		return 0, 0, BadCursor()
	}
	s.cursors.Decrypt(block, block)
	if binary.BigEndian.Uint32(block[12:]) != 0 {
		return 0, 0, BadCursor()
	}
	return int64(binary.BigEndian.Uint64(block) >> 16), int64(binary.BigEndian.Uint64(block[6:]) >> 16), nil
}

// JobCursor returns the id of a job as a text that tells nobody else which job it is.
func (s *Seal) JobCursor(id lessor.JobID) string {
	s.jobs.Encrypt(id.UUID[:], id.UUID[:])
	return base64.RawURLEncoding.EncodeToString(id.UUID[:])
}

// OpenJobCursor returns what JobCursor was given. A cursor that was made up is some place in the list.
func (s *Seal) OpenJobCursor(text string) (id lessor.JobID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != aes.BlockSize {
		return id, BadCursor()
	}
	s.jobs.Decrypt(id.UUID[:], b)
	return id, nil
}
