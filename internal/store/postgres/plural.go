package postgres

import (
	"strconv"
	"strings"
)

// How plural statements are written: an array of each column that differs, opened side by side. In the select list: as arguments of one unnest in
// the from clause each array would be copied into a table of its own first, at twice the price of the insert.

// typeNames are the types of columns, by the letters that stand for them in a list of types.
var typeNames = map[rune]string{'u': "uuid", 'i': "bigint", 't': "text", 'b': "boolean", 'y': "bytea", 'f': "float8"}

// unnestAs opens arrays of these types, which are the parameters from $1 on, as rows.
func unnestAs(types, columns string) string {
	return openRows(types, strings.Split(columns, ", "), anyShape)
}

// openRows makes rows of a shape out of the parameters from $1 on: arrays of the columns that differ, and single values of the others.
func openRows(types string, columns []string, in shape) string {
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

// plural returns a statement on rows. In its text {rows} stands for a query that returns them.
func plural(text, types, columns string) *statement {
	return &statement{text: text, types: types, columns: strings.Split(columns, ", ")}
}

// insertAll inserts rows, in the order given.
func insertAll(table, columns, types string) *statement {
	return plural("insert into "+table+" ("+columns+") {rows}", types, columns)
}

// form is a statement for rows of one shape.
type form struct {
	stmt  *statement
	shape shape
}

func (f form) text() string {
	return strings.ReplaceAll(f.stmt.text, "{rows}", openRows(f.stmt.types, f.stmt.columns, f.shape))
}

// exactly wraps a change of rows that must hit as many as its parameter after the arrays says; else it divides by zero.
func exactly(change string, params int) string {
	return "with hit as (" + change + " returning 1)" +
		" select 1 / (case when count(*) = $" + strconv.Itoa(params+1) + "::bigint then 1 else 0 end) from hit"
}

// at is an equality that only a look-up by index can meet, since it is written as a range. With a plain one the planner may also read the whole index,
// in its order, and does so once the server has seen the table empty: until the next vacuum, however many rows there are by then.
func at(column, key string) string { return column + " between " + key + " and " + key }

// excluded sets all columns but the first, the key, to those of the row that was not inserted because of it.
func excluded(columns string) string {
	names := strings.Split(columns, ", ")[1:]
	for i, name := range names {
		names[i] = name + " = excluded." + name
	}
	return strings.Join(names, ", ")
}

// of puts a table's alias before each column.
func of(alias, columns string) string {
	names := strings.Split(columns, ", ")
	for i, name := range names {
		names[i] = alias + "." + name
	}
	return strings.Join(names, ", ")
}

// width counts columns.
func width(columns string) int { return strings.Count(columns, ",") + 1 }
