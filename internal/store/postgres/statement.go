package postgres

import (
	"encoding/binary"
	"math"
	"time"

	"lessor"
)

// statement is one SQL text, prepared on each connection at its first use. Parameters and results travel in binary.
type statement struct{ text string }

func sql(text string) *statement { return &statement{text: text} }

// The object ids of the types in which parameters travel. They are the same in every PostgreSQL.
const (
	oidBool   = 16
	oidBytea  = 17
	oidInt8   = 20
	oidText   = 25
	oidFloat8 = 701
	oidUUID   = 2950
)

// Single parameters in binary form; nil is null.

func int8Of(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

func instantOf(v lessor.Instant) []byte { return int8Of(int64(v)) }

func textOf(v string) []byte { return append([]byte{}, v...) }

func uuidOf(v lessor.UUID) []byte { return v[:] }

// rows gathers the parameters of a plural statement: one array a column, a value of each for every row, left to right.
// Its memory is used again for the next statement.
type rows struct {
	columns []column
	next    int // the column that the next value goes to
}

// column is a one-dimensional array as PostgreSQL sends it: a head of 20 bytes, then each value behind its length.
type column struct {
	oid   uint32
	n     uint32
	nulls bool
	buf   []byte
}

const arrayHead = 20

func (r *rows) reset() *rows {
	for i := range r.columns {
		c := &r.columns[i]
		c.oid, c.n, c.nulls, c.buf = 0, 0, false, c.buf[:arrayHead]
	}
	r.next = 0
	return r
}

// row begins a new row.
func (r *rows) row() { r.next = 0 }

func (r *rows) column(oid uint32, size int) *column {
	if r.next == len(r.columns) {
		r.columns = append(r.columns, column{buf: make([]byte, arrayHead, 512)})
	}
	c := &r.columns[r.next]
	r.next++
	c.oid = oid
	c.n++
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(size))
	return c
}

func (r *rows) null(oid uint32) { r.column(oid, -1).nulls = true }

func (r *rows) int(v int64) {
	c := r.column(oidInt8, 8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(v))
}

func (r *rows) instant(v lessor.Instant) { r.int(int64(v)) }

func (r *rows) millis(v time.Duration) { r.int(v.Milliseconds()) }

func (r *rows) flag(v bool) {
	c := r.column(oidBool, 1)
	b := byte(0)
	if v {
		b = 1
	}
	c.buf = append(c.buf, b)
}

func (r *rows) realOrNull(v *float64) {
	if v == nil {
		r.null(oidFloat8)
		return
	}
	c := r.column(oidFloat8, 8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, math.Float64bits(*v))
}

func (r *rows) text(v string) {
	c := r.column(oidText, len(v))
	c.buf = append(c.buf, v...)
}

// textOrNull stores "" as null.
func (r *rows) textOrNull(v string) {
	if v == "" {
		r.null(oidText)
		return
	}
	r.text(v)
}

func (r *rows) bytes(v []byte) {
	c := r.column(oidBytea, len(v))
	c.buf = append(c.buf, v...)
}

// bytesOrNull stores nil as null, and keeps it apart from what is empty.
func (r *rows) bytesOrNull(v []byte) {
	if v == nil {
		r.null(oidBytea)
		return
	}
	r.bytes(v)
}

func (r *rows) id(v lessor.UUID) {
	c := r.column(oidUUID, len(v))
	c.buf = append(c.buf, v[:]...)
}

// idOrNull stores the zero id as null.
func (r *rows) idOrNull(v lessor.UUID) {
	if v.IsZero() {
		r.null(oidUUID)
		return
	}
	r.id(v)
}

// params returns the arrays. They are valid until the next reset.
func (r *rows) params() [][]byte {
	var all [][]byte
	for i := range r.columns {
		c := &r.columns[i]
		if c.oid == 0 {
			break // left over from a wider statement
		}
		head := c.buf
		binary.BigEndian.PutUint32(head, 1) // dimensions
		flags := uint32(0)
		if c.nulls {
			flags = 1
		}
		binary.BigEndian.PutUint32(head[4:], flags)
		binary.BigEndian.PutUint32(head[8:], c.oid)
		binary.BigEndian.PutUint32(head[12:], c.n)
		binary.BigEndian.PutUint32(head[16:], 1) // lower bound
		all = append(all, c.buf)
	}
	return all
}

// emptyArray is what a plural statement gets when it is asked for nothing.
func emptyArray(oid uint32) []byte {
	b := make([]byte, 12)
	binary.BigEndian.PutUint32(b[8:], oid)
	return b
}
