package sqlite

import (
	"maps"
	"math/bits"
	"slices"
)

// seqSet is a set of places in line. Seqs lie close together, so one bit for each, in small chunks, takes little
// memory, and chunks are quick to sort.
type seqSet struct {
	chunks map[int64]*chunk
	n      int
}

// chunkSeqs is the number of seqs in a chunk, which is one cache line.
const chunkSeqs = 512

type chunk [chunkSeqs / 64]uint64

func newSeqSet() seqSet { return seqSet{chunks: map[int64]*chunk{}} }

// bitOf returns the chunk of a seq, the word in the chunk and the bit in the word.
func bitOf(seq int64) (key int64, word int, bit uint64) {
	key = seq >> 9
	low := seq - key*chunkSeqs
	return key, int(low / 64), 1 << (low % 64)
}

func (s *seqSet) has(seq int64) bool {
	key, word, bit := bitOf(seq)
	c := s.chunks[key]
	return c != nil && c[word]&bit != 0
}

// set puts a seq in or takes it out, and reports whether that changed anything.
func (s *seqSet) set(seq int64, in bool) bool {
	key, word, bit := bitOf(seq)
	c := s.chunks[key]
	if was := c != nil && c[word]&bit != 0; was == in {
		return false
	}
	if c == nil {
		c = new(chunk)
		s.chunks[key] = c
	}
	c[word] ^= bit
	if in {
		s.n++
		return true
	}
	s.n--
	if *c == (chunk{}) {
		delete(s.chunks, key)
	}
	return true
}

// keys returns the keys of the chunks, in order.
func (s *seqSet) keys() []int64 { return slices.Sorted(maps.Keys(s.chunks)) }

// appendChunk appends the seqs of one chunk, in order.
func (s *seqSet) appendChunk(seqs []int64, key int64) []int64 {
	c := s.chunks[key]
	if c == nil {
		return seqs
	}
	for i, word := range c {
		for ; word != 0; word &= word - 1 {
			seqs = append(seqs, key*chunkSeqs+int64(i*64+bits.TrailingZeros64(word)))
		}
	}
	return seqs
}
