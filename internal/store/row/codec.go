// Package row declares each row of the stores once: its columns, in order, and the field of the Go value that each one
// holds. A declaration is a function that passes a value's fields to a Codec, column by column. The same function
// writes a row, reads it, and lists its columns, so names, order and types cannot disagree between the two stores
// (TestRowsComeBack).
//
// A declaration does not name a table: the columns of a turn stand in five of them. Where the two databases store a
// value differently, the declaration says so. To add a column, add its line here and a migration to each store;
// storetest saves and loads every field.
package row

import (
	"encoding/json"
	"strings"
	"time"

	"lessor"
)

// Writer takes the values of a row, left to right. Each store binds the parameters of its statements with one.
type Writer interface {
	Int(int64)
	Real(float64)
	Flag(bool)
	Text(string)
	Bytes([]byte)
	ID(lessor.UUID)
	Null(Kind)
}

// Reader returns the values of a row, left to right. Null is the zero value of its type, and nil for Bytes. What it
// returns is a copy.
type Reader interface {
	Int() int64
	Real() float64
	Flag() bool
	Text() string
	Bytes() []byte
	ID() lessor.UUID
	// Null reports whether the next column is null, and passes over it if it is.
	Null() bool
}

// Kind is the type of a column, as one letter. It is no type of its own, so that a Writer need not import this package.
type Kind = byte

// The kinds of columns. SQLite stores flags as integers and ids as bytes; PostgreSQL has a type for each.
const (
	KindInt   Kind = 'i'
	KindReal  Kind = 'f'
	KindFlag  Kind = 'b'
	KindText  Kind = 't'
	KindBytes Kind = 'y'
	KindID    Kind = 'u'
)

// Codec passes over the columns of one row: it writes, reads or lists them.
type Codec struct {
	// ImpliedTrace says that a trace id which is the job's id in hexadecimal is stored as "". PostgreSQL does so: it
	// keeps such ids out of an index. SQLite stores every trace id.
	ImpliedTrace bool
	// Err is the first value that could not be read.
	Err error

	to    Writer
	from  Reader
	names []string
	kinds []byte
}

// Write returns a Codec that writes to w.
func Write(w Writer) *Codec { return &Codec{to: w} }

// Read returns a Codec that reads from r.
func Read(r Reader) *Codec { return &Codec{from: r} }

// Columns lists the columns of a row, separated by ", ".
func Columns[T any](declare func(*Codec, *T)) string {
	var c Codec
	declare(&c, new(T))
	return strings.Join(c.names, ", ")
}

// Kinds returns the kinds of a row's columns, a letter each.
func Kinds[T any](declare func(*Codec, *T)) string {
	var c Codec
	declare(&c, new(T))
	return string(c.kinds)
}

// Pointer is a declaration that reads into a new value.
func Pointer[T any](declare func(*Codec, *T)) func(*Codec, **T) {
	return func(c *Codec, p **T) {
		*p = new(T)
		declare(c, *p)
	}
}

// Of puts the name of a table before each column of a list.
func Of(table, columns string) string {
	return table + "." + strings.ReplaceAll(columns, ", ", ", "+table+".")
}

func (c *Codec) list(name string, k Kind) {
	c.names, c.kinds = append(c.names, name), append(c.kinds, k)
}

// Integer is a column of integers, among them instants: milliseconds since 1970, 0 = not set.
func Integer[T ~int | ~int64 | ~uint8](c *Codec, name string, v *T) {
	switch {
	case c.to != nil:
		c.to.Int(int64(*v))
	case c.from != nil:
		*v = T(c.from.Int())
	default:
		c.list(name, KindInt)
	}
}

// Millis is a column of durations, in milliseconds.
func Millis(c *Codec, name string, v *time.Duration) {
	ms := v.Milliseconds()
	Integer(c, name, &ms)
	if c.from != nil {
		*v = time.Duration(ms) * time.Millisecond
	}
}

func flag(c *Codec, name string, v *bool) {
	switch {
	case c.to != nil:
		c.to.Flag(*v)
	case c.from != nil:
		*v = c.from.Flag()
	default:
		c.list(name, KindFlag)
	}
}

// Text is a column of texts.
func Text[T ~string](c *Codec, name string, v *T) {
	switch {
	case c.to != nil:
		c.to.Text(string(*v))
	case c.from != nil:
		*v = T(c.from.Text())
	default:
		c.list(name, KindText)
	}
}

// TextOrNull is Text that stores "" as null.
func TextOrNull(c *Codec, name string, v *string) {
	if c.to != nil && *v == "" {
		c.to.Null(KindText)
		return
	}
	Text(c, name, v)
}

// bytesOrNull stores nil as null, which is not the same as an empty value.
func bytesOrNull[T ~[]byte](c *Codec, name string, v *T) {
	switch {
	case c.to != nil && *v == nil:
		c.to.Null(KindBytes)
	case c.to != nil:
		c.to.Bytes(*v)
	case c.from != nil:
		*v = c.from.Bytes()
	default:
		c.list(name, KindBytes)
	}
}

func hash(c *Codec, name string, v *[32]byte) {
	b := v[:]
	bytesOrNull(c, name, &b)
	if c.from != nil {
		copy(v[:], b)
	}
}

// ID is a column of ids.
func ID(c *Codec, name string, v *lessor.UUID) {
	switch {
	case c.to != nil:
		c.to.ID(*v)
	case c.from != nil:
		*v = c.from.ID()
	default:
		c.list(name, KindID)
	}
}

// IDOrNull is ID that stores the zero id as null.
func IDOrNull(c *Codec, name string, v *lessor.UUID) {
	if c.to != nil && v.IsZero() {
		c.to.Null(KindID)
		return
	}
	ID(c, name, v)
}

func float(c *Codec, name string, v *float64) {
	switch {
	case c.to != nil:
		c.to.Real(*v)
	case c.from != nil:
		*v = c.from.Real()
	default:
		c.list(name, KindReal)
	}
}

// isNil passes over a column whose value is nil, which is stored as null. Any other it leaves to the caller, and makes
// room for what will be read.
func isNil[T any](c *Codec, k Kind, v **T) bool {
	switch {
	case c.to != nil && *v == nil:
		c.to.Null(k)
		return true
	case c.from != nil && c.from.Null():
		*v = nil
		return true
	case c.to == nil:
		*v = new(T)
	}
	return false
}

func floatOrNil(c *Codec, name string, v **float64) {
	if !isNil(c, KindReal, v) {
		float(c, name, *v)
	}
}

func integerOrNil(c *Codec, name string, v **int) {
	if !isNil(c, KindInt, v) {
		Integer(c, name, *v)
	}
}

func textOrNil(c *Codec, name string, v **string) {
	if !isNil(c, KindText, v) {
		Text(c, name, *v)
	}
}

func idOrNil(c *Codec, name string, v **lessor.TenantID) {
	if !isNil(c, KindID, v) {
		ID(c, name, &(*v).UUID)
	}
}

// jsonOrNil stores a value as JSON.
func jsonOrNil[T any](c *Codec, name string, v **T) {
	var raw []byte
	if c.to != nil && *v != nil {
		var err error
		if raw, err = json.Marshal(*v); err != nil {
			panic(err) // the words always marshal
		}
	}
	bytesOrNull(c, name, &raw)
	if c.from == nil || raw == nil {
		return
	}
	*v = new(T)
	if err := json.Unmarshal(raw, *v); err != nil && c.Err == nil {
		c.Err = err
	}
}
