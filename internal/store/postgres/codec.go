package postgres

import (
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	_ row.Writer = (*wire.Rows)(nil)
	_ row.Reader = (*wire.Row)(nil)
)

// encode returns a codec that adds values to r.
func encode(r *wire.Rows) *row.Codec {
	c := row.Write(r)
	c.ImpliedTrace = true
	return c
}

// decode returns a codec that reads the columns of r.
func decode(r *wire.Row) *row.Codec {
	c := row.Read(r)
	c.ImpliedTrace = true
	return c
}

// rowsOf returns the parameters of a plural statement. They are valid until the next use of the scratch.
func rowsOf[T any](v *view, values []T, declare func(*row.Codec, *T)) *wire.Rows {
	r := v.scratch.Reset()
	c := encode(r)
	for i := range values {
		r.Next()
		declare(c, &values[i])
	}
	return r
}

// save writes rows with a plural statement.
func save[T any](t *tx, verb string, s *wire.Statement, values []T, declare func(*row.Codec, *T)) error {
	if len(values) == 0 {
		return t.err
	}
	return t.write(verb, wire.Step{Stmt: s, Rows: rowsOf(&t.view, values, declare)})
}

// saveArrays writes rows with a statement that takes each column as an array.
func saveArrays[T any](t *tx, verb string, s *wire.Statement, values []T, declare func(*row.Codec, *T)) error {
	if len(values) == 0 {
		return t.err
	}
	return t.write(verb, wire.Step{Stmt: s}, rowsOf(&t.view, values, declare).Params()...)
}

// collect appends each row of a result to a list.
func collect[T any](list *[]T, declare func(*row.Codec, *T)) func(*wire.Row) error {
	return func(r *wire.Row) error {
		*list = append(*list, *new(T))
		c := decode(r)
		declare(c, &(*list)[len(*list)-1])
		return c.Err
	}
}

// insertInto inserts rows into a table, in the order given.
func insertInto[T any](table string, declare func(*row.Codec, *T)) *wire.Statement {
	return wire.InsertAll(table, row.Columns(declare), row.Kinds(declare))
}

// upsert inserts rows that arrive as arrays, and replaces those whose key is there.
func upsert[T any](table, key string, declare func(*row.Codec, *T)) *wire.Statement {
	columns := row.Columns(declare)
	return wire.SQL("insert into " + table + " (" + columns + ") " + wire.Unnest(row.Kinds(declare), columns) +
		" on conflict (" + key + ") do update set " + wire.Excluded(columns))
}
