package wire

import (
	"encoding/binary"
	"math"

	"lessor"
)

// Row reads the columns of a result from left to right. It returns copies.
type Row struct {
	values [][]byte
	n      int
}

func (r *Row) value() []byte {
	r.n++
	return r.values[r.n-1]
}

// Skip passes over columns.
func (r *Row) Skip(n int) { r.n += n }

// Int reads an integer of any width; null is 0.
func (r *Row) Int() int64 {
	switch v := r.value(); len(v) {
	case 8:
		return int64(binary.BigEndian.Uint64(v))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v)))
	}
	return 0
}

// Instant reads an instant; null is 0.
func (r *Row) Instant() lessor.Instant { return lessor.Instant(r.Int()) }

// Flag reads a boolean; null is false.
func (r *Row) Flag() bool {
	v := r.value()
	return len(v) == 1 && v[0] == 1
}

// Text reads a text; null is "".
func (r *Row) Text() string { return string(r.value()) }

// Bytes returns nil for null.
func (r *Row) Bytes() []byte {
	v := r.value()
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

// ID returns the zero id for null.
func (r *Row) ID() (u lessor.UUID) {
	copy(u[:], r.value())
	return u
}

// Real reads a float8; null is 0.
func (r *Row) Real() float64 {
	if v := r.value(); v != nil {
		return math.Float64frombits(binary.BigEndian.Uint64(v))
	}
	return 0
}

// Array reads an array of one dimension: its values become the columns of a row, which are valid as long as r is. It
// reuses the memory of that row.
func (r *Row) Array(into *Row) {
	into.values, into.n = into.values[:0], 0
	v := r.value()
	for v = v[min(arrayHead, len(v)):]; len(v) > 0; {
		size := binary.BigEndian.Uint32(v)
		v = v[lengthHead:]
		if size == nullLength {
			into.values = append(into.values, nil)
			continue
		}
		into.values = append(into.values, v[:size])
		v = v[size:]
	}
}

// Null reports whether the next column is null, and passes over it if it is.
func (r *Row) Null() bool {
	null := r.values[r.n] == nil
	if null {
		r.n++
	}
	return null
}
