package sqlite

import (
	"errors"
	"strings"

	"zombiezen.com/go/sqlite"

	"lessor"
	"lessor/internal/store/row"
)

// args binds the parameters of a statement, left to right. A value that cannot be bound is an error when the statement
// runs.
type args struct {
	stmt *sqlite.Stmt
	n    int
}

var _ row.Writer = (*args)(nil)

func (a *args) next() int {
	a.n++
	return a.n
}

// Int implements row.Writer, and so do the methods that follow.
func (a *args) Int(v int64)      { a.stmt.BindInt64(a.next(), v) }
func (a *args) Real(v float64)   { a.stmt.BindFloat(a.next(), v) }
func (a *args) Flag(v bool)      { a.stmt.BindBool(a.next(), v) }
func (a *args) Text(v string)    { a.stmt.BindText(a.next(), v) }
func (a *args) Bytes(v []byte)   { a.stmt.BindBytes(a.next(), v) }
func (a *args) ID(v lessor.UUID) { a.Bytes(v[:]) }
func (a *args) Null(row.Kind)    { a.stmt.BindNull(a.next()) }

func (a *args) instant(v lessor.Instant) { a.Int(int64(v)) }

// limit binds the limit of a query. To SQLite a negative one would be none.
func (a *args) limit(n int) { a.Int(int64(max(0, n))) }

// idOrNull binds the zero id as null.
func (a *args) idOrNull(v lessor.UUID) {
	if v.IsZero() {
		a.Null(row.KindID)
		return
	}
	a.ID(v)
}

// result reads the columns of a result row, left to right.
type result struct {
	stmt  *sqlite.Stmt
	n     int
	codec *row.Codec // reads from this result
}

var _ row.Reader = (*result)(nil)

func (r *result) next() int {
	r.n++
	return r.n - 1
}

// Int implements row.Reader, and so do the methods that follow.
func (r *result) Int() int64    { return r.stmt.ColumnInt64(r.next()) }
func (r *result) Real() float64 { return r.stmt.ColumnFloat(r.next()) }
func (r *result) Flag() bool    { return r.Int() != 0 }
func (r *result) Text() string  { return r.stmt.ColumnText(r.next()) }

// Bytes implements row.Reader.
func (r *result) Bytes() []byte {
	if r.Null() {
		return nil
	}
	n := r.next()
	b := make([]byte, r.stmt.ColumnLen(n))
	r.stmt.ColumnBytes(n, b)
	return b
}

// ID implements row.Reader.
func (r *result) ID() (u lessor.UUID) {
	r.stmt.ColumnBytes(r.next(), u[:])
	return u
}

// Null implements row.Reader.
func (r *result) Null() bool {
	null := r.stmt.ColumnIsNull(r.n)
	if null {
		r.n++
	}
	return null
}

func (r *result) instant() lessor.Instant { return lessor.Instant(r.Int()) }

// errEnough ends a read before its last row.
var errEnough = errors.New("enough")

// query runs a statement that is kept under its text, and passes each row to visit. Whatever happens, the statement is
// reset: an unfinished one would hold its snapshot and with it the checkpoints.
func query(conn *sqlite.Conn, text string, bind func(*args), visit func(*result) error) error {
	stmt, err := conn.Prepare(text)
	if err != nil {
		return err
	}
	if bind != nil {
		bind(&args{stmt: stmt})
	}
	r := &result{stmt: stmt}
	r.codec = row.Read(r)
	for {
		more, err := stmt.Step()
		if err != nil {
			return err // Step has reset it
		}
		if !more {
			return stmt.Reset()
		}
		r.n = 0
		err = visit(r)
		if err == nil {
			err = r.codec.Err
		}
		if err != nil {
			return errors.Join(unless(err, errEnough), stmt.Reset())
		}
	}
}

// unless returns err, or nil if it is end.
func unless(err, end error) error {
	if errors.Is(err, end) {
		return nil
	}
	return err
}

// collect returns the rows of a query.
func collect[T any](
	conn *sqlite.Conn, text string, bind func(*args), declare func(*row.Codec, *T),
) (all []T, err error) {
	err = query(conn, text, bind, func(r *result) error {
		all = append(all, *new(T))
		declare(r.codec, &all[len(all)-1])
		return nil
	})
	return all, err
}

// find returns the row of a query that has at most one; nil if it has none.
func find[T any](conn *sqlite.Conn, text string, bind func(*args), declare func(*row.Codec, *T)) (found *T, err error) {
	err = query(conn, text, bind, func(r *result) error {
		found = new(T)
		declare(r.codec, found)
		return nil
	})
	return found, err
}

// exec runs a kept statement that returns no rows.
func exec(stmt *sqlite.Stmt) error {
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}

// insertOne is the text of an insert of one row. into is "insert into" or "replace into" and the table.
func insertOne(into, columns string) string {
	return into + " (" + columns + ") values " + marks(columns)
}

// marks returns a parameter for each column.
func marks(columns string) string {
	return "(?" + strings.Repeat(",?", strings.Count(columns, ",")) + ")"
}

// excluded is the part of an upsert that sets all columns but the first, the key, to the values of the new row.
func excluded(columns string) string {
	names := strings.Split(columns, ", ")[1:]
	for i, name := range names {
		names[i] = name + " = excluded." + name
	}
	return strings.Join(names, ", ")
}
