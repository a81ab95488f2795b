package wire

import (
	"strconv"
	"strings"
)

// Statement is one SQL text, prepared on each connection at its first use.
type Statement struct {
	text string
	// The kinds and names of the columns of a plural statement.
	kinds   string
	columns []string
}

// SQL returns a statement with single parameters.
func SQL(text string) *Statement { return &Statement{text: text} }

// Plural returns a statement on rows. In its text {rows} stands for a query that returns them. Each letter of kinds is
// the type of one column: u uuid, i bigint, t text, b boolean, y bytea, f float8.
func Plural(text, kinds, columns string) *Statement {
	return &Statement{text: text, kinds: kinds, columns: strings.Split(columns, ", ")}
}

// InsertAll returns a statement that inserts rows, in the order given.
func InsertAll(table, columns, kinds string) *Statement {
	return Plural("insert into "+table+" ("+columns+") {rows}", kinds, columns)
}

// Form is a statement for rows of one shape.
type Form struct {
	Stmt  *Statement
	Shape Shape
}

// Text is the SQL text that the server gets.
func (f Form) Text() string {
	return strings.ReplaceAll(f.Stmt.text, "{rows}", openRows(f.Stmt.kinds, f.Stmt.columns, f.Shape))
}

// Unnest is a query that makes rows of the parameters from $1 on, which are arrays of these kinds.
func Unnest(kinds, columns string) string {
	return openRows(kinds, strings.Split(columns, ", "), AnyShape)
}

// openRows is a query that makes rows of the parameters from $1 on: arrays of the columns that differ, and single
// values of the others. The arrays are unnested in the select list; in the from clause the server would first copy each
// into a table of its own, at twice the price of the insert.
func openRows(kinds string, columns []string, in Shape) string {
	values := make([]string, len(columns))
	for i, letter := range kinds {
		param := "$" + strconv.Itoa(i+1) + "::" + types[byte(letter)].name
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

// Excluded sets all columns but the first, the key, to the values of the row that was not inserted because of a
// conflict.
func Excluded(columns string) string {
	_, rest, _ := strings.Cut(columns, ", ")
	return Assign("excluded", rest)
}

// Assign sets columns to those of another row.
func Assign(from, columns string) string {
	names := strings.Split(columns, ", ")
	for i, name := range names {
		names[i] = name + " = " + from + "." + name
	}
	return strings.Join(names, ", ")
}

// Width counts columns.
func Width(columns string) int { return strings.Count(columns, ",") + 1 }
