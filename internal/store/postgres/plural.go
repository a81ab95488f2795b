package postgres

import (
	"strconv"
	"strings"
)

// How plural statements are written: one array a column, opened side by side. In the select list: as arguments of one unnest in
// the from clause each array would be copied into a table of its own first, at twice the price of the insert.

// typeNames are the types of columns, by the letters that stand for them in a list of types.
var typeNames = map[rune]string{'u': "uuid", 'i': "bigint", 't': "text", 'b': "boolean", 'y': "bytea", 'f': "float8"}

// unnest opens arrays of these types, which are the parameters from $1 on, as rows without names.
func unnest(types string) string { return unnestAs(types, "") }

// unnestAs gives the columns names.
func unnestAs(types, columns string) string {
	var b strings.Builder
	names := strings.Split(columns, ", ")
	for i, letter := range types {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("unnest($" + strconv.Itoa(i+1) + "::" + typeNames[letter] + "[])")
		if columns != "" {
			b.WriteString(" as " + names[i])
		}
	}
	return "select " + b.String()
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

// text has as parameters arrays of the columns that differ, opened side by side, and single values of the others.
func (f form) text() string {
	s := f.stmt
	if s.types == "" {
		return s.text
	}
	var b strings.Builder
	for i, letter := range s.types {
		if i > 0 {
			b.WriteString(", ")
		}
		param := "$" + strconv.Itoa(i+1) + "::" + typeNames[letter]
		if f.shape.differs(i) {
			param = "unnest(" + param + "[])"
		}
		b.WriteString(param + " as " + s.columns[i])
	}
	return strings.ReplaceAll(s.text, "{rows}", "select "+b.String())
}

// exactly wraps a change of rows that must hit as many as its parameter after the arrays says; else it divides by zero.
func exactly(change string, params int) string {
	return "with hit as (" + change + " returning 1)" +
		" select 1 / (case when count(*) = $" + strconv.Itoa(params+1) + "::bigint then 1 else 0 end) from hit"
}

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
