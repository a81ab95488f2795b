package postgres

import (
	"encoding/binary"
	"math"
	"time"

	"lessor"
)

// statement is one SQL text, prepared on each connection at its first use. Parameters and results travel in binary.
type statement struct {
	text string
	// Of one on rows: the types and names of their columns.
	types   string
	columns []string
}

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

func int4Of(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

func int8Of(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

func flagOf(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

func instantOf(v lessor.Instant) []byte { return int8Of(int64(v)) }

func textOf(v string) []byte { return append([]byte{}, v...) }

func uuidOf(v lessor.UUID) []byte { return v[:] }

// rows gathers the parameters of a plural statement: one column a parameter, a value of each for every row, left to right.
// Its memory is used again for the next statement.
type rows struct {
	columns []column
	next    int // the column that the next value goes to
}

// column is a one-dimensional array as PostgreSQL sends it: a head of 20 bytes, then each value behind its length. As long as all values are
// equal it holds the first alone.
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

func (r *rows) reset() *rows {
	for i := range r.columns {
		c := &r.columns[i]
		c.oid, c.n, c.nulls, c.equal, c.buf = 0, 0, false, true, c.buf[:arrayHead]
	}
	r.next = 0
	return r
}

// row begins a new row.
func (r *rows) row() { r.next = 0 }

func (r *rows) column(oid uint32) *column {
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

// repeat makes the one value that is there n.
func (c *column) repeat(n uint32) {
	c.equal = false
	one := c.buf[arrayHead:]
	for range n - 1 {
		c.buf = append(c.buf, one...)
	}
}

func (r *rows) null(oid uint32) {
	c := r.column(oid)
	if c.equal && c.n > 1 {
		if c.nulls {
			return
		}
		c.repeat(c.n - 1)
	}
	c.nulls = true
	c.buf = binary.BigEndian.AppendUint32(c.buf, nullLength)
}

func (r *rows) int(v int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(v))
	put(r.column(oidInt8), b[:])
}

func (r *rows) instant(v lessor.Instant) { r.int(int64(v)) }

func (r *rows) millis(v time.Duration) { r.int(v.Milliseconds()) }

func (r *rows) flag(v bool) {
	b := "\x00"
	if v {
		b = "\x01"
	}
	put(r.column(oidBool), b)
}

func (r *rows) realOrNull(v *float64) {
	if v == nil {
		r.null(oidFloat8)
		return
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], math.Float64bits(*v))
	put(r.column(oidFloat8), b[:])
}

func (r *rows) text(v string) { put(r.column(oidText), v) }

// textOrNull stores "" as null.
func (r *rows) textOrNull(v string) {
	if v == "" {
		r.null(oidText)
		return
	}
	r.text(v)
}

func (r *rows) bytes(v []byte) { put(r.column(oidBytea), v) }

// bytesOrNull stores nil as null, and keeps it apart from what is empty.
func (r *rows) bytesOrNull(v []byte) {
	if v == nil {
		r.null(oidBytea)
		return
	}
	r.bytes(v)
}

func (r *rows) id(v lessor.UUID) { put(r.column(oidUUID), v[:]) }

// idOrNull stores the zero id as null.
func (r *rows) idOrNull(v lessor.UUID) {
	if v.IsZero() {
		r.null(oidUUID)
		return
	}
	r.id(v)
}

// params returns the columns as arrays. They are valid until the next reset.
func (r *rows) params() [][]byte { return r.in(anyShape) }

// shape says which columns of some rows differ, a bit for each. In most columns of most batches all values are equal, and travel once.
type shape uint64

// anyShape is that of all rows.
const anyShape = ^shape(0)

func (s shape) differs(column int) bool { return s>>column&1 == 1 }

// shape returns that of the rows at hand. The first column always counts as one that differs: it says how many rows there are.
func (r *rows) shape() shape {
	s := shape(1)
	for i := range r.columns {
		if r.columns[i].oid != 0 && !r.columns[i].equal {
			s |= 1 << i
		}
	}
	return s
}

// in returns the columns as a statement for rows of this shape expects them. They are valid until the next reset.
func (r *rows) in(s shape) [][]byte {
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

// emptyArray is what a plural statement gets when it is asked for nothing.
func emptyArray(oid uint32) []byte {
	b := make([]byte, 12)
	binary.BigEndian.PutUint32(b[8:], oid)
	return b
}
