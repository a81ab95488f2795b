package sqlite

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// position is the end of a commit in the write-ahead log. The formats of the log and of its index, from which the
// position is read, are documented: https://sqlite.org/walformat.html.
type position struct {
	salts uint64 // both salts of the log; a restarted log has the first one raised by one, and a new second one
	frame uint32 // the last frame of the commit, counted from 1
	sum   uint64 // the checksum of the log up to there
}

// indexBytes is the length of the two copies of the header with which the log's index begins.
const indexBytes = 2 * 48

// parseIndex returns the position of the last commit. It returns false if the two copies of the header differ,
// which they do while another process writes them.
func parseIndex(b *[indexBytes]byte) (p position, ok bool) {
	const initialized, frame, sum, salts = 12, 16, 24, 32
	if [48]byte(b[:48]) != [48]byte(b[48:]) || b[initialized] != 1 {
		return p, false
	}
	native := binary.NativeEndian
	return position{
		salts: binary.BigEndian.Uint64(b[salts:]),
		frame: native.Uint32(b[frame:]),
		sum:   uint64(native.Uint32(b[sum:]))<<32 | uint64(native.Uint32(b[sum+4:])),
	}, true
}

// logState says how a log compares with a position.
type logState int

const (
	logMissing   logState = iota // there is no log, or an empty one
	logDamaged                   // the log does not reach the position with valid checksums, or is another one
	logRestarted                 // the log was restarted since, after SQLite had copied all of it into the database
	logWhole                     // the log holds every frame up to the position
)

// maxRestarts bounds how many logs may have followed the one in the mark. After a kill it is one. After a power
// failure the mark may be older by the seconds that the system kept it in memory. Two logs that have nothing to do
// with each other have random salts.
const maxRestarts = 10_000

// restarts is how often a log was restarted between two of its salts.
func restarts(from, to uint64) uint32 { return uint32(to>>32) - uint32(from>>32) }

const (
	logHeaderBytes   = 32
	frameHeaderBytes = 24
)

// compareLog reads the log up to want as SQLite's recovery would, and changes nothing.
func compareLog(name string, want position) (state logState, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return logMissing, nil
	}
	if err != nil {
		return logDamaged, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	log := bufio.NewReaderSize(f, 1<<20)
	var head [logHeaderBytes]byte
	switch _, err := io.ReadFull(log, head[:]); {
	case errors.Is(err, io.EOF):
		return logMissing, nil
	case err != nil:
		return logDamaged, unless(err, io.ErrUnexpectedEOF)
	}
	order, pageBytes := logFormat(head[:])
	if order == nil {
		return logDamaged, nil
	}
	sum := addSum(order, 0, head[:24])
	salts := binary.BigEndian.Uint64(head[16:])
	switch {
	case sum != binary.BigEndian.Uint64(head[24:]):
		return logDamaged, nil
	case restarts(want.salts, salts) > 0 && restarts(want.salts, salts) <= maxRestarts:
		return logRestarted, nil
	case salts != want.salts:
		return logDamaged, nil
	}
	frame := make([]byte, frameHeaderBytes+pageBytes)
	for range want.frame {
		if _, err := io.ReadFull(log, frame); err != nil {
			return logDamaged, unless(unless(err, io.ErrUnexpectedEOF), io.EOF)
		}
		sum = addSum(order, addSum(order, sum, frame[:8]), frame[frameHeaderBytes:])
		if binary.BigEndian.Uint64(frame[8:]) != salts || binary.BigEndian.Uint64(frame[16:]) != sum {
			return logDamaged, nil
		}
	}
	if sum != want.sum {
		return logDamaged, nil
	}
	return logWhole, nil
}

// logFormat returns the byte order of the checksums and the size of a page. The order is nil if head is not of a log.
func logFormat(head []byte) (order binary.ByteOrder, pageBytes int) {
	const littleEndian, bigEndian, version = 0x377f0682, 0x377f0683, 3007000
	switch binary.BigEndian.Uint32(head) {
	case littleEndian:
		order = binary.LittleEndian
	case bigEndian:
		order = binary.BigEndian
	}
	size := binary.BigEndian.Uint32(head[8:])
	if binary.BigEndian.Uint32(head[4:]) != version || size < 512 || size > 65536 || size&(size-1) != 0 {
		return nil, 0
	}
	return order, int(size)
}

// addSum continues a checksum of the log over b, whose length is a multiple of 8.
func addSum(order binary.ByteOrder, sum uint64, b []byte) uint64 {
	s0, s1 := uint32(sum>>32), uint32(sum)
	for ; len(b) > 0; b = b[8:] {
		s0 += order.Uint32(b) + s1
		s1 += order.Uint32(b[4:]) + s0
	}
	return uint64(s0)<<32 | uint64(s1)
}
