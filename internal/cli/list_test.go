package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pages returns n numbers in pages of at most 3, with an empty page in between.
func pages(n int, asked *[]string) func(limit int, cursor string) ([]int, string, error) {
	return func(limit int, cursor string) ([]int, string, error) {
		*asked = append(*asked, fmt.Sprintf("%d@%s", limit, cursor))
		if cursor == "3" {
			return nil, "3b", nil
		}
		from, _ := strconv.Atoi(strings.TrimSuffix(cursor, "b"))
		to := min(from+min(limit, 3), n)
		items := []int{}
		for i := from; i < to; i++ {
			items = append(items, i)
		}
		if to == n {
			return items, "", nil
		}
		return items, strconv.Itoa(to), nil
	}
}

func TestListReadsAsManyPagesAsItNeeds(t *testing.T) {
	numbers := list[int]{
		name: "numbers", header: []string{"N"},
		row: func(i int, _ time.Time) []string { return []string{strconv.Itoa(i)} },
	}
	for _, tt := range []struct {
		name  string
		n     int
		flags listFlags
		want  []int
		next  string
		asked []string
	}{
		{"one page", 2, listFlags{limit: 100}, []int{0, 1}, "", []string{"100@"}},
		{"exact", 5, listFlags{limit: 5}, []int{0, 1, 2, 3, 4}, "", []string{"5@", "2@3", "2@3b"}},
		{"short of all", 9, listFlags{limit: 4}, []int{0, 1, 2, 3}, "4", []string{"4@", "1@3", "1@3b"}},
		{
			"all", 7,
			listFlags{limit: 2, all: true},
			[]int{0, 1, 2, 3, 4, 5, 6},
			"",
			[]string{"1000@", "1000@3", "1000@3b", "1000@6"},
		},
		{"from a cursor", 7, listFlags{limit: 2, cursor: "5"}, []int{5, 6}, "", []string{"2@5"}},
		{"large limit", 2, listFlags{limit: 5000}, []int{0, 1}, "", []string{"1000@"}},
		{"nothing", 0, listFlags{limit: 1}, []int{}, "", []string{"1@"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, notes bytes.Buffer
			var asked []string
			a := &app{IO: IO{Out: &out, Err: &notes}, json: true}
			if err := numbers.show(a, tt.flags, pages(tt.n, &asked)); err != nil {
				t.Fatal(err)
			}
			var got struct {
				Numbers    []int   `json:"numbers"`
				NextCursor *string `json:"next_cursor"`
			}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%v in\n%s", err, out.String())
			}
			if diff := cmp.Diff(tt.want, got.Numbers); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
			if next := text(got.NextCursor); next != tt.next {
				t.Errorf("next cursor %q, want %q", next, tt.next)
			}
			if diff := cmp.Diff(tt.asked, asked); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}

			out.Reset()
			a.json = false
			if err := numbers.show(a, tt.flags, pages(tt.n, &asked)); err != nil {
				t.Fatal(err)
			}
			if rows := strings.Count(out.String(), "\n"); rows != min(len(tt.want), 1)+len(tt.want) {
				t.Errorf("the table has %d lines:\n%s", rows, out.String())
			}
			if more := strings.Contains(notes.String(), "there are more"); more != (tt.next != "") {
				t.Errorf("notes: %s", notes.String())
			}
		})
	}
}
