package httpapi

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"lessor"
)

func TestPagesShowEveryEntryOnce(t *testing.T) {
	type entry struct {
		at lessor.Instant
		id string
	}
	all := []entry{{5, "e"}, {9, "a"}, {9, "b"}, {1, "z"}, {7, "c"}, {0, "y"}, {1 << 50, "f"}}
	key := func(e entry) string { return newestFirst(e.at) + e.id }
	for limit := 1; limit <= len(all)+1; limit++ {
		var got []entry
		cursor := ""
		for {
			page, next, err := pageOf(slices.Clone(all), key, limit, cursor)
			if err != nil || len(page) > limit {
				t.Fatalf("limit %d: %d entries, %v", limit, len(page), err)
			}
			got = append(got, page...)
			if next == nil {
				break
			}
			cursor = *next
		}
		newest := func(a, b entry) int { return cmp.Or(-cmp.Compare(a.at, b.at), strings.Compare(a.id, b.id)) }
		if len(got) != len(all) || !slices.IsSortedFunc(got, newest) {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
	if _, _, err := pageOf(all, key, 1, "!"); lessor.CodeOf(err) != lessor.CodeInvalidValue {
		t.Errorf("a made-up cursor: %v, want invalid_value", err)
	}
}

func TestTokensAndWorkersArePaged(t *testing.T) {
	s := start(t)
	for _, w := range []string{"w1", "w2", "w3"} {
		s.api("POST", "/leases/request", `{"worker_id":"`+w+`"}`, 200)
		s.issue("viewer", "")
	}
	for path, wire := range map[string][2]string{
		scheduling + "/workers": {"workers", "next_cursor"}, administration + "/tokens": {"tokens", "nextCursor"},
	} {
		whole := decoded(t, s.call("GET", path, "", with(s.admin)))[wire[0]].([]any)
		n, cursor := 0, ""
		for {
			list := decoded(t, s.call("GET", path+"?limit=1"+cursor, "", with(s.admin)))
			n += len(list[wire[0]].([]any))
			if list[wire[1]] == nil {
				break
			}
			cursor = "&cursor=" + list[wire[1]].(string)
		}
		if n != len(whole) || n < 3 {
			t.Errorf("%s: %d in pages, %d at once", path, n, len(whole))
		}
	}
}
