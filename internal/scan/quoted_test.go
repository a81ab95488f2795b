package scan

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestEveryByteAtEveryPlace puts each byte at each place of a string, also behind an escape, and compares what is read
// with the standard library.
func TestEveryByteAtEveryPlace(t *testing.T) {
	for _, before := range []string{"", `\n`, "é", `1234567\\`} {
		for at := range 20 {
			for c := range 256 {
				text := append([]byte(before), bytes.Repeat([]byte("a"), 20)...)
				text[len(before)+at] = byte(c)
				wantReadAsTheStandardLibrary(t, []byte(`"`+string(text)+`"`))
			}
		}
	}
}

func wantReadAsTheStandardLibrary(t *testing.T, quoted []byte) {
	t.Helper()
	var got []byte
	var plain bool
	read := Read(quoted, func(s *Scanner) { got, plain = s.quoted() })
	var want string
	switch err := json.Unmarshal(quoted, &want); {
	case read && plain && (err != nil || string(got) != want):
		t.Errorf("%q is read as plain, %q; the standard library reads %q, %v", quoted, got, want, err)
	case err == nil && !read:
		t.Errorf("%q is not read, want %q", quoted, want)
	case err == nil && !plain && string(got) == want && !bytes.ContainsRune([]byte(want), '\uFFFD'):
		t.Errorf("%q is read, but not as plain", quoted)
	}
}
