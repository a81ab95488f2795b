package scan

import (
	"strings"
	"testing"
)

// TestListMakesRoomOnce reads a long list of elements of the same length.
func TestListMakesRoomOnce(t *testing.T) {
	text := []byte("[" + strings.Repeat(`{"n":1},`, 499) + `{"n":2}]`)
	var got [][100]int64
	read := func() {
		got = nil
		if !Read(text, func(s *Scanner) {
			List(s, &got, func(e *[100]int64) { s.Skip(); e[0] = 1 })
		}) {
			t.Fatal("the list was not read")
		}
	}
	if n := testing.AllocsPerRun(10, read); n > 6 || len(got) != 500 || got[499][0] != 1 {
		t.Errorf("%d elements with %.0f allocations, want 500 with at most 6", len(got), n)
	}
}

// TestListMakesLittleRoom reads a list whose first element is short, and which is followed by much else.
func TestListMakesLittleRoom(t *testing.T) {
	text := []byte("[1,2" + strings.Repeat(" ", 1<<20) + "]")
	var got []int64
	read := Read(text, func(s *Scanner) { List(s, &got, func(*int64) { s.Skip() }) })
	if !read || len(got) != 2 || cap(got) > 2*maxRoom {
		t.Errorf("%d elements in room for %d, want 2 and room for at most %d", len(got), cap(got), 2*maxRoom)
	}
}
