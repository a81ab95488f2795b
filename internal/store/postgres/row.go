package postgres

import (
	"encoding/binary"
	"math"
	"time"

	"lessor"
)

// row reads the columns of a result, left to right. What it returns is a copy.
type row struct {
	values [][]byte
	n      int
}

func (r *row) value() []byte {
	r.n++
	return r.values[r.n-1]
}

// skip passes over columns.
func (r *row) skip(n int) { r.n += n }

// isNull reports whether the next column is null, without passing over it.
func (r *row) isNull() bool { return r.values[r.n] == nil }

// int reads an integer of any width; null is 0.
func (r *row) int() int64 {
	switch v := r.value(); len(v) {
	case 8:
		return int64(binary.BigEndian.Uint64(v))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v)))
	}
	return 0
}

func (r *row) instant() lessor.Instant { return lessor.Instant(r.int()) }

func (r *row) millis() time.Duration { return time.Duration(r.int()) * time.Millisecond }

func (r *row) flag() bool {
	v := r.value()
	return len(v) == 1 && v[0] == 1
}

func (r *row) text() string { return string(r.value()) }

// bytes returns nil for null.
func (r *row) bytes() []byte {
	v := r.value()
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

// id returns the zero id for null.
func (r *row) id() (u lessor.UUID) {
	copy(u[:], r.value())
	return u
}

func (r *row) realOrNil() *float64 {
	v := r.value()
	if v == nil {
		return nil
	}
	return new(math.Float64frombits(binary.BigEndian.Uint64(v)))
}

func (r *row) textOrNil() *string {
	v := r.value()
	if v == nil {
		return nil
	}
	return new(string(v))
}
