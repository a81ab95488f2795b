package sqlite

import (
	"errors"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"lessor"
)

// args binds the parameters of a statement, left to right. A value that cannot be bound shows when the statement runs.
type args struct {
	stmt *sqlite.Stmt
	n    int
}

func (a *args) int(v int64) {
	a.n++
	a.stmt.BindInt64(a.n, v)
}

func (a *args) instant(v lessor.Instant) { a.int(int64(v)) }

func (a *args) millis(v time.Duration) { a.int(v.Milliseconds()) }

func (a *args) flag(v bool) {
	a.n++
	a.stmt.BindBool(a.n, v)
}

func (a *args) real(v float64) {
	a.n++
	a.stmt.BindFloat(a.n, v)
}

func (a *args) text(v string) {
	a.n++
	a.stmt.BindText(a.n, v)
}

// textOrNull stores "" as null.
func (a *args) textOrNull(v string) {
	if v == "" {
		a.null()
		return
	}
	a.text(v)
}

func (a *args) blob(v []byte) {
	a.n++
	a.stmt.BindBytes(a.n, v)
}

// blobOrNull stores nil as null, and keeps it apart from what is empty.
func (a *args) blobOrNull(v []byte) {
	if v == nil {
		a.null()
		return
	}
	a.blob(v)
}

func (a *args) id(v lessor.UUID) { a.blob(v[:]) }

// idOrNull stores the zero id as null.
func (a *args) idOrNull(v lessor.UUID) {
	if v.IsZero() {
		a.null()
		return
	}
	a.id(v)
}

func (a *args) null() {
	a.n++
	a.stmt.BindNull(a.n)
}

// row reads the columns of a result, left to right.
type row struct {
	stmt *sqlite.Stmt
	n    int
}

func (r *row) next() int {
	r.n++
	return r.n - 1
}

func (r *row) int() int64 { return r.stmt.ColumnInt64(r.next()) }

func (r *row) instant() lessor.Instant { return lessor.Instant(r.int()) }

func (r *row) millis() time.Duration { return time.Duration(r.int()) * time.Millisecond }

func (r *row) flag() bool { return r.int() != 0 }

func (r *row) text() string { return r.stmt.ColumnText(r.next()) }

// blob returns nil for null.
func (r *row) blob() []byte {
	n := r.next()
	if r.stmt.ColumnIsNull(n) {
		return nil
	}
	b := make([]byte, r.stmt.ColumnLen(n))
	r.stmt.ColumnBytes(n, b)
	return b
}

// id returns the zero id for null.
func (r *row) id() lessor.UUID {
	var u lessor.UUID
	r.stmt.ColumnBytes(r.next(), u[:])
	return u
}

func (r *row) realOrNil() *float64 {
	n := r.next()
	if r.stmt.ColumnIsNull(n) {
		return nil
	}
	return new(r.stmt.ColumnFloat(n))
}

func (r *row) textOrNil() *string {
	n := r.next()
	if r.stmt.ColumnIsNull(n) {
		return nil
	}
	return new(r.stmt.ColumnText(n))
}

// errEnough ends a read before its last row.
var errEnough = errors.New("enough")

// query runs a statement that is kept under its text, and hands each row to visit. Whatever happens, the statement is
// reset: an unfinished one would hold its snapshot and with it the checkpoints.
func query(conn *sqlite.Conn, text string, bind func(*args), visit func(*row) error) error {
	stmt, err := conn.Prepare(text)
	if err != nil {
		return err
	}
	if bind != nil {
		bind(&args{stmt: stmt})
	}
	r := &row{stmt: stmt}
	for {
		more, err := stmt.Step()
		if err != nil {
			return err // Step has reset it
		}
		if !more {
			return stmt.Reset()
		}
		r.n = 0
		if err := visit(r); err != nil {
			return errors.Join(unless(err, errEnough), stmt.Reset())
		}
	}
}

func unless(err, end error) error {
	if errors.Is(err, end) {
		return nil
	}
	return err
}

// exec runs a kept statement that returns no rows.
func exec(stmt *sqlite.Stmt) error {
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}

// bulkRows is how many rows one insert takes: 16 make a row about a fifth cheaper than one by one, more gain nothing.
const bulkRows = 16

// bulk inserts rows into one table.
type bulk struct {
	one, many *sqlite.Stmt
	args      args // kept here so that binding a row allocates nothing
}

func newBulk(conn *sqlite.Conn, into, columns string) (b bulk, err error) {
	marks := "(?" + strings.Repeat(",?", strings.Count(columns, ",")) + ")"
	head := into + " (" + columns + ") values "
	if b.one, err = conn.Prepare(head + marks); err != nil {
		return b, err
	}
	b.many, err = conn.Prepare(head + marks + strings.Repeat(","+marks, bulkRows-1))
	return b, err
}

// insert writes n rows; bind binds the columns of row i.
func (b *bulk) insert(n int, bind func(i int, a *args)) error {
	for i := 0; i < n; {
		rows, stmt := 1, b.one
		if n-i >= bulkRows {
			rows, stmt = bulkRows, b.many
		}
		b.args = args{stmt: stmt}
		for range rows {
			bind(i, &b.args)
			i++
		}
		if err := exec(stmt); err != nil {
			return err
		}
	}
	return nil
}
