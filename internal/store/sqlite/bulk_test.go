package sqlite

import (
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"lessor/internal/store/row"
)

// TestBulkInsertStoresEveryValue inserts values that differ from those before them only in type, in length or in
// their last bytes, and continues after an insert that failed. Every row must be read back as it was written.
func TestBulkInsertStoresEveryValue(t *testing.T) {
	conn, err := sqlite.OpenConn(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, "create table t (k unique, v)", nil); err != nil {
		t.Fatal(err)
	}
	values := []struct {
		write func(c *row.Codec)
		want  string
	}{
		{writeInteger(0), "0"},
		{writeInteger(0), "0"},
		{writeText(""), "''"},
		{writeNull, "NULL"},
		{writeNull, "NULL"},
		{writeInteger(1 << 40), "1099511627776"},
		{writeText("a"), "'a'"},
		{writeText("a\x00"), "X'6100'"},
		{writeText(strings.Repeat("b", 22)), "'" + strings.Repeat("b", 22) + "'"},
		{writeText(strings.Repeat("b", 23)), "'" + strings.Repeat("b", 23) + "'"},
		{writeText(strings.Repeat("b", 22) + "c"), "'" + strings.Repeat("b", 22) + "c'"},
		{writeText(strings.Repeat("b", 22)), "'" + strings.Repeat("b", 22) + "'"},
		{writeInteger(1), "1"},
	}
	var b bulk
	if err := b.prepare(conn, "insert into t", "k, v"); err != nil {
		t.Fatal(err)
	}
	const rows = 3*bulkRows + 5 // some in statements of many rows, some in statements of one
	for i, v := range values {
		if err := b.insert(rows, func(n int, c *row.Codec) {
			key := i*rows + n
			row.Integer(c, "k", &key)
			v.write(c)
		}); err != nil {
			t.Fatal(err)
		}
		if err := b.insert(1, func(_ int, c *row.Codec) {
			key := 0 // a key that exists
			row.Integer(c, "k", &key)
			v.write(c)
		}); err == nil {
			t.Fatal("a key was inserted twice")
		}
		checkValues(t, conn, i*rows, rows, v.want)
	}
}

// checkValues fails the test unless the rows from key first on are as many as rows, and each has the value want.
func checkValues(t *testing.T, conn *sqlite.Conn, first, rows int, want string) {
	t.Helper()
	n := 0
	// SQLite's quote ends a text at its first zero byte.
	err := query(conn, `select iif(instr(v, char(0)), quote(cast(v as blob)), quote(v)) from t where k >= ?`,
		func(a *args) { a.Int(int64(first)) }, func(r *result) error {
			n++
			if got := r.Text(); got != want {
				t.Fatalf("row %d: %s, want %s", first+n, got, want)
			}
			return nil
		})
	if err != nil || n != rows {
		t.Fatalf("%d rows, want %d; %v", n, rows, err)
	}
}

func writeInteger(n int64) func(*row.Codec) { return func(c *row.Codec) { row.Integer(c, "v", &n) } }

func writeText(s string) func(*row.Codec) { return func(c *row.Codec) { row.Text(c, "v", &s) } }

func writeNull(c *row.Codec) {
	var s string
	row.TextOrNull(c, "v", &s)
}
