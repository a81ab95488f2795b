package sqlite

import (
	"encoding/binary"
	"strings"

	"zombiezen.com/go/sqlite"

	"lessor"
	"lessor/internal/store/row"
)

// bulkRows is the number of rows in one insert: 16 make a row about a fifth cheaper than one by one, more gain nothing.
const bulkRows = 16

// bulk inserts rows into one table.
type bulk struct {
	one, many inserter
}

// inserter is a statement that inserts one or more rows. It runs again and again, and SQLite keeps the values of its
// parameters from one run to the next. Most columns of a row repeat what the row in the same place had: such a value is
// not bound again, because to compare it costs less than a tenth of binding it.
type inserter struct {
	stmt  *sqlite.Stmt
	codec *row.Codec // writes to this inserter
	bound []value    // the values of the parameters
	n     int        // the next parameter, from 0
}

// value is a short value that a parameter has.
type value struct {
	kind  row.Kind // 0 = a value that is not known
	len   uint8
	bytes [22]byte
}

const kindNull row.Kind = 'n'

var _ row.Writer = (*inserter)(nil)

func (b *bulk) prepare(conn *sqlite.Conn, into, columns string) error {
	one := insertOne(into, columns)
	if err := b.one.prepare(conn, one); err != nil {
		return err
	}
	return b.many.prepare(conn, one+strings.Repeat(","+marks(columns), bulkRows-1))
}

func (s *inserter) prepare(conn *sqlite.Conn, text string) (err error) {
	if s.stmt, err = conn.Prepare(text); err == nil {
		s.codec, s.bound = row.Write(s), make([]value, s.stmt.BindParamCount())
	}
	return err
}

// insert writes n rows; bind writes the columns of row i.
func (b *bulk) insert(n int, bind func(i int, c *row.Codec)) error {
	for i := 0; i < n; {
		rows, s := 1, &b.one
		if n-i >= bulkRows {
			rows, s = bulkRows, &b.many
		}
		s.n = 0
		for range rows {
			bind(i, s.codec)
			i++
		}
		if err := exec(s.stmt); err != nil {
			clear(s.bound) // one of them may be what failed
			return err
		}
	}
	return nil
}

// changes moves to the next parameter, and reports whether v is to be bound to it.
func (s *inserter) changes(v value) bool {
	was := &s.bound[s.n]
	s.n++
	if v.kind != 0 && *was == v {
		return false
	}
	*was = v
	return true
}

// Int implements row.Writer, and so do the methods that follow.
func (s *inserter) Int(n int64) {
	v := value{kind: row.KindInt}
	binary.NativeEndian.PutUint64(v.bytes[:], uint64(n))
	if s.changes(v) {
		s.stmt.BindInt64(s.n, n)
	}
}

func (s *inserter) Real(f float64) {
	s.changes(value{})
	s.stmt.BindFloat(s.n, f)
}

func (s *inserter) Flag(b bool) {
	if b {
		s.Int(1)
	} else {
		s.Int(0)
	}
}

func (s *inserter) Text(text string) {
	var v value
	if len(text) <= len(v.bytes) {
		v.kind, v.len = row.KindText, uint8(copy(v.bytes[:], text))
	}
	if s.changes(v) {
		s.stmt.BindText(s.n, text)
	}
}

func (s *inserter) Bytes(b []byte) {
	s.changes(value{})
	s.stmt.BindBytes(s.n, b)
}

func (s *inserter) ID(id lessor.UUID) { s.Bytes(id[:]) }

func (s *inserter) Null(row.Kind) {
	if s.changes(value{kind: kindNull}) {
		s.stmt.BindNull(s.n)
	}
}
