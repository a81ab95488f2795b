package rules

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"lessor"
)

// Seal encrypts the store's numbers in ids and cursors: the number of jobs would tell one tenant about the others. Only
// the nodes of one store have its key.
type Seal struct {
	ids, cursors, jobs cipher.Block
}

// NewSeal returns the seal of a store with this key.
func NewSeal(key [32]byte) *Seal {
	return &Seal{ids: block(key, "lease id"), cursors: block(key, "cursor"), jobs: block(key, "job cursor")}
}

// block derives a cipher for one use, so that values sealed for one use mean nothing in another.
func block(key [32]byte, use string) cipher.Block {
	k := sha256.Sum256(append(key[:], use...))
	b, err := aes.NewCipher(k[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	return b
}

const (
	// seqAt is the offset of the job's seq in a lease's id. Its 6 bytes are enough for 30,000 jobs a second for 290
	// years. The bytes before are random, but for the 6 bits that make it a uuid.
	seqAt     = 10
	seqBytes  = 16 - seqAt
	versionAt = 6
	variantAt = 8
	// sealedVersion is the version of random uuids, openVersion that of ids from before seqs were sealed.
	sealedVersion = 4
	openVersion   = 7
)

// LeaseID makes the id of a lease of the job with this seq. random must be unpredictable: the id is the key to the
// lease, and 74 bits of it are random.
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

// Seq returns the seq of a lease's job. For an id that LeaseID did not make it is any number.
func (s *Seal) Seq(id lessor.LeaseID) int64 {
	var b [8]byte
	copy(b[8-seqBytes:], id.UUID[seqAt:])
	seq := binary.BigEndian.Uint64(b[:])
	if id.UUID[versionAt]>>4 != openVersion {
		seq ^= s.pad(id)
	}
	return int64(seq)
}

// pad returns the bits that hide the seq in an id. They depend on the random part of the id and on the key.
func (s *Seal) pad(id lessor.LeaseID) uint64 {
	var b [aes.BlockSize]byte
	copy(b[:], id.UUID[:seqAt])
	s.ids.Encrypt(b[:], b[:])
	return binary.BigEndian.Uint64(b[:]) >> (8 * (8 - seqBytes))
}

// Cursor encrypts two numbers of 48 bits each.
func (s *Seal) Cursor(a, b int64) string {
	var block [aes.BlockSize]byte // the last four bytes stay 0, so that a forged cursor is noticed
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

// JobCursor encrypts the id of a job.
func (s *Seal) JobCursor(id lessor.JobID) string {
	s.jobs.Encrypt(id.UUID[:], id.UUID[:])
	return base64.RawURLEncoding.EncodeToString(id.UUID[:])
}

// OpenJobCursor returns what JobCursor was given. A forged cursor is some place in the list.
func (s *Seal) OpenJobCursor(text string) (id lessor.JobID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != aes.BlockSize {
		return id, BadCursor()
	}
	s.jobs.Decrypt(id.UUID[:], b)
	return id, nil
}
