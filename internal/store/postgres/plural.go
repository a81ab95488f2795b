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

// foldAs opens what rows.folded returns as rows: the first column is an array, of each other there is either one value for all rows or an
// array. Columns without a name are told apart by their place.
func foldAs(types, columns string) string {
	var values, arrays strings.Builder
	names := strings.Split(columns, ", ")
	for i, letter := range types {
		if i == 0 {
			values.WriteString("a0 as " + names[0])
			arrays.WriteString("unnest($1::" + typeNames[letter] + "[]) as a0")
			continue
		}
		n, param := strconv.Itoa(i), "$"+strconv.Itoa(2*i)
		values.WriteString(", coalesce(" + param + "::" + typeNames[letter] + ", a" + n + ") as " + names[i])
		arrays.WriteString(", unnest($" + strconv.Itoa(2*i+1) + "::" + typeNames[letter] + "[]) as a" + n)
	}
	return "select " + values.String() + " from (select " + arrays.String() + " offset 0) a"
}

// insertAll inserts rows, in the order given. Its parameters are folded.
func insertAll(table, columns, types string) *statement {
	return sql("insert into " + table + " (" + columns + ") " + foldAs(types, columns))
}

// exactly wraps a change of rows that must hit as many as its parameter after the arrays says; else it divides by zero.
func exactly(change string, params int) *statement {
	return sql("with hit as (" + change + " returning 1)" +
		" select 1 / (case when count(*) = $" + strconv.Itoa(params+1) + "::bigint then 1 else 0 end) from hit")
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
