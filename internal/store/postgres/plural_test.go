package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRowsOfEveryShape has rows come back from the server as they were given, whichever of their columns differ, are null or both, also when
// no more forms of the statement may be prepared.
func TestRowsOfEveryShape(t *testing.T) {
	const columns = 10
	s := openAt(t, Config{URL: pool.Database(t)})
	c, err := s.dialer.dial(t.Context(), brief)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.close() }()
	echo := plural("select * from ({rows}) r", "ittttttttt", "a, b, c, d, e, f, g, h, i, j")
	var params rows
	for differs := range 1 << (columns - 1) {
		var want, got [][]string
		r := params.reset()
		for i := range 3 {
			r.row()
			r.int(int64(i))
			var line []string
			for column := range columns - 1 {
				v := ""
				switch {
				case differs>>column&1 == 1 && i == 1:
				case column%2 == 0: // the odd ones are all null if they do not differ
					v = "equal"
				case differs>>column&1 == 1:
					v = "different"
				}
				r.textOrNull(v)
				line = append(line, v)
			}
			want = append(want, line)
		}
		if in := r.shape(); in != shape(differs<<1|1) {
			t.Fatalf("the shape is %b, want %b", in, differs<<1|1)
		}
		err := c.once(step{verb: "echo", stmt: echo, rows: r, each: func(r *row) error {
			r.skip(1)
			var line []string
			for range columns - 1 {
				line = append(line, r.text())
			}
			got = append(got, line)
			return nil
		}})
		if err != nil {
			t.Fatalf("shape %b: %v", differs<<1|1, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("shape %b came back differently (-want +got):\n%s", differs<<1|1, diff)
		}
	}
	if n := len(c.prepared); n > maxPrepared+1 {
		t.Errorf("%d statements are prepared, want at most %d", n, maxPrepared+1)
	}
}
