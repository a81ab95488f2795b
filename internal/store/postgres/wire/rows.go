package wire

import (
	"encoding/binary"
	"math"

	"lessor"
)

// The object ids of the types in which parameters travel. They are the same in every PostgreSQL.
const (
	oidBool   = 16
	oidBytea  = 17
	oidInt8   = 20
	oidText   = 25
	oidFloat8 = 701
	oidUUID   = 2950
)

// types are the types of columns, by the letters that stand for their kinds.
var types = ['z']struct {
	oid  uint32
	name string
}{
	'u': {oidUUID, "uuid"}, 'i': {oidInt8, "bigint"}, 't': {oidText, "text"},
	'b': {oidBool, "boolean"}, 'y': {oidBytea, "bytea"}, 'f': {oidFloat8, "float8"},
}

// Rows gathers the parameters of a plural statement: one parameter a column, with a value for every row. A row's values
// are added from left to right after Next. Reset keeps the memory for the next statement.
type Rows struct {
	columns []column
	next    int // the column that the next value goes to
}

// column is a one-dimensional array as PostgreSQL sends it: a head of 20 bytes, then each value behind its length. As
// long as all values are equal it holds only the first.
type column struct {
	oid   uint32
	n     uint32
	nulls bool
	equal bool
	buf   []byte
}

const (
	arrayHead  = 20
	lengthHead = 4
	nullLength = math.MaxUint32 // -1
)

// Reset removes all rows.
func (r *Rows) Reset() *Rows {
	for i := range r.columns {
		c := &r.columns[i]
		c.oid, c.n, c.nulls, c.equal, c.buf = 0, 0, false, true, c.buf[:arrayHead]
	}
	r.next = 0
	return r
}

// Next begins a new row.
func (r *Rows) Next() { r.next = 0 }

func (r *Rows) column(oid uint32) *column {
	if r.next == len(r.columns) {
		r.columns = append(r.columns, column{equal: true, buf: make([]byte, arrayHead, 512)})
	}
	c := &r.columns[r.next]
	r.next++
	c.oid = oid
	c.n++
	return c
}

// put adds a value to a column.
func put[T string | []byte](c *column, v T) {
	if c.equal && c.n > 1 {
		if string(c.buf[arrayHead+lengthHead:]) == string(v) && !c.nulls {
			return
		}
		c.repeat(c.n - 1)
	}
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(v)))
	c.buf = append(c.buf, v...)
}

// repeat makes n values of the one that is there.
func (c *column) repeat(n uint32) {
	c.equal = false
	one := c.buf[arrayHead:]
	for range n - 1 {
		c.buf = append(c.buf, one...)
	}
}

// Null adds a null of a type.
func (r *Rows) Null(kind byte) {
	c := r.column(types[kind].oid)
	if c.equal && c.n > 1 {
		if c.nulls {
			return
		}
		c.repeat(c.n - 1)
	}
	c.nulls = true
	c.buf = binary.BigEndian.AppendUint32(c.buf, nullLength)
}

// Int adds a bigint.
func (r *Rows) Int(v int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(v))
	put(r.column(oidInt8), b[:])
}

// Instant adds an instant, in milliseconds.
func (r *Rows) Instant(v lessor.Instant) { r.Int(int64(v)) }

// Flag adds a boolean.
func (r *Rows) Flag(v bool) {
	b := "\x00"
	if v {
		b = "\x01"
	}
	put(r.column(oidBool), b)
}

// Real adds a float8.
func (r *Rows) Real(v float64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], math.Float64bits(v))
	put(r.column(oidFloat8), b[:])
}

// Text adds a text.
func (r *Rows) Text(v string) { put(r.column(oidText), v) }

// Bytes adds a bytea; nil is empty.
func (r *Rows) Bytes(v []byte) { put(r.column(oidBytea), v) }

// ID adds a uuid.
func (r *Rows) ID(v lessor.UUID) { put(r.column(oidUUID), v[:]) }

// Params returns the columns as arrays. They are valid until the next Reset.
func (r *Rows) Params() [][]byte { return r.in(AnyShape) }

// Shape says which columns of some rows differ, a bit for each. In most columns of most batches all values are equal,
// and travel once.
type Shape uint64

// AnyShape fits all rows.
const AnyShape = ^Shape(0)

func (s Shape) differs(column int) bool { return s>>column&1 == 1 }

// shape returns that of the rows at hand. The first column always counts as one that differs: it says how many rows
// there are.
func (r *Rows) shape() Shape {
	s := Shape(1)
	for i := range r.columns {
		if r.columns[i].oid != 0 && !r.columns[i].equal {
			s |= 1 << i
		}
	}
	return s
}

// in returns the columns as a statement for rows of this shape expects them. They are valid until the next Reset.
func (r *Rows) in(s Shape) [][]byte {
	all := make([][]byte, 0, len(r.columns)+1)
	for i := range r.columns {
		c := &r.columns[i]
		switch {
		case c.oid == 0:
			return all // left over from a wider statement
		case s.differs(i):
			all = append(all, c.array())
		case c.nulls:
			all = append(all, nil)
		default:
			all = append(all, c.buf[arrayHead+lengthHead:])
		}
	}
	return all
}

func (c *column) array() []byte {
	if c.equal {
		c.repeat(c.n)
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
	return c.buf
}
