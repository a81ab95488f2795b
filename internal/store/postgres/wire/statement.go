package wire

import (
	"strconv"
	"strings"
)

// Statement is one SQL text, prepared on each connection at its first use.
type Statement struct {
	text string
	// The types and names of the columns of a plural statement.
	types   string
	columns []string
}

// SQL returns a statement with single parameters.
func SQL(text string) *Statement { return &Statement{text: text} }

// Plural returns a statement on rows. In its text {rows} stands for a query that returns them. Each letter of types is
// the type of one column: u uuid, i bigint, t text, b boolean, y bytea, f float8.
func Plural(text, types, columns string) *Statement {
	return &Statement{text: text, types: types, columns: strings.Split(columns, ", ")}
}

// InsertAll returns a statement that inserts rows, in the order given.
func InsertAll(table, columns, types string) *Statement {
	return Plural("insert into "+table+" ("+columns+") {rows}", types, columns)
}

// Form is a statement for rows of one shape.
type Form struct {
	Stmt  *Statement
	Shape Shape
}

// Text is the SQL text that the server gets.
func (f Form) Text() string {
	return strings.ReplaceAll(f.Stmt.text, "{rows}", openRows(f.Stmt.types, f.Stmt.columns, f.Shape))
}

var typeNames = map[rune]string{'u': "uuid", 'i': "bigint", 't': "text", 'b': "boolean", 'y': "bytea", 'f': "float8"}

// Unnest is a query that makes rows of the parameters from $1 on, which are arrays of these types.
func Unnest(types, columns string) string {
	return openRows(types, strings.Split(columns, ", "), AnyShape)
}

// openRows is a query that makes rows of the parameters from $1 on: arrays of the columns that differ, and single
// values of the others. The arrays are unnested in the select list; in the from clause the server would first copy each
// into a table of its own, at twice the price of the insert.
func openRows(types string, columns []string, in Shape) string {
	values := make([]string, len(columns))
	for i, letter := range types {
		param := "$" + strconv.Itoa(i+1) + "::" + typeNames[letter]
		if in.differs(i) {
			param = "unnest(" + param + "[])"
		}
		values[i] = param + " as " + columns[i]
	}
	return "select " + strings.Join(values, ", ")
}

// Exactly wraps a change that must hit as many rows as the parameter after its own says; else it divides by zero.
func Exactly(change string, params int) string {
	return "with hit as (" + change + " returning 1)" +
		" select 1 / (case when count(*) = $" + strconv.Itoa(params+1) + "::bigint then 1 else 0 end) from hit"
}

// At is an equality, written as a range so that only a look-up by index can meet it. For a plain one the planner may
// read the whole index in its order, and does so from when the server saw the table empty until the next vacuum.
func At(column, key string) string { return column + " between " + key + " and " + key }

// Excluded sets all columns but the first, the key, to those of the row whose insert met a conflict.
func Excluded(columns string) string {
	names := strings.Split(columns, ", ")[1:]
	for i, name := range names {
		names[i] = name + " = excluded." + name
	}
	return strings.Join(names, ", ")
}

// Of puts the alias of a table before each column.
func Of(alias, columns string) string {
	return alias + "." + strings.ReplaceAll(columns, ", ", ", "+alias+".")
}

// Width counts columns.
func Width(columns string) int { return strings.Count(columns, ",") + 1 }
