package wire

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRowsOfEveryShape: the server returns rows as they were sent, whichever of their columns differ or are null,
// and also when no more forms of the statement may be prepared.
func TestRowsOfEveryShape(t *testing.T) {
	const columns = 10
	c, err := dialer(t).Dial(t.Context(), Limits{time.Second, time.Second, time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	echo := Plural("select * from ({rows}) r", "ittttttttt", "a, b, c, d, e, f, g, h, i, j")
	var params Rows
	for differs := range 1 << (columns - 1) {
		var want, got [][]string
		r := params.Reset()
		for i := range 3 {
			r.Next()
			r.Int(int64(i))
			var line []string
			for column := range columns - 1 {
				v := ""
				switch {
				case differs>>column&1 == 1 && i == 1:
				case column%2 == 0: // odd columns are all null unless they differ
					v = "equal"
				case differs>>column&1 == 1:
					v = "different"
				}
				if v == "" {
					r.Null('t')
				} else {
					r.Text(v)
				}
				line = append(line, v)
			}
			want = append(want, line)
		}
		if in := r.shape(); in != Shape(differs<<1|1) {
			t.Fatalf("the shape is %b, want %b", in, differs<<1|1)
		}
		err := c.Do(Step{Verb: "echo", Stmt: echo, Rows: r, Each: func(r *Row) error {
			r.Skip(1)
			var line []string
			for range columns - 1 {
				line = append(line, r.Text())
			}
			got = append(got, line)
			return nil
		}})
		if err != nil {
			t.Fatalf("shape %b: %v", differs<<1|1, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("rows of shape %b (-want +got):\n%s", differs<<1|1, diff)
		}
	}
	if n := len(c.prepared); n > maxPrepared+1 {
		t.Errorf("%d statements are prepared, want at most %d", n, maxPrepared+1)
	}
}

// TestArraysAreReadAsGiven: the values of an array are read as they were sent, also null and empty ones.
func TestArraysAreReadAsGiven(t *testing.T) {
	c, err := dialer(t).Dial(t.Context(), Limits{time.Second, time.Second, time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var got [][]string
	var array Row
	err = c.Do(Step{Verb: "read arrays", Each: func(r *Row) error {
		r.Array(&array)
		line := []string{}
		for range r.Int() {
			line = append(line, array.Text())
		}
		got = append(got, line)
		return nil
	}, Stmt: SQL("select a, coalesce(cardinality(a), 0) from (values (array['x', null, '', 'yz']), ('{}'), (null)," +
		" (array['z'])) v (a)")})
	if want := [][]string{{"x", "", "", "yz"}, {}, {}, {"z"}}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("read the arrays %q, %v; want %q", got, err, want)
	}
}
