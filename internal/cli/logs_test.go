package cli

import (
	"strings"
	"testing"
)

// TestOutputOnATerminalIsHarmless writes each text in pieces of every length.
func TestOutputOnATerminalIsHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"plain ü 日本\n\ttab\r\n":    "plain ü 日本\n\ttab\r\n",
		"\x1b[31mred\x1b[0m":       "\x1b[31mred\x1b[0m",
		"\x1b[38;5;196mdeep\x1b[m": "\x1b[38;5;196mdeep\x1b[m",
		"\x1b[2Jgone\x1b[1;1H":     "gone",
		"title\x1b]0;owned\x07":    "title0;owned",
		"keys\x1b[>4;2m":           "keys",  // xterm: how keys are sent
		"query\x1b[?4m":            "query", // xterm answers it as if the person had typed
		"inside\x1b[3\x1b1m":       "inside",
		"bell\x07 back\x08space":   "bell backspace",
		"csi\u009b31m":             "csi31m",
		"bad \xff\xfe bytes":       "bad  bytes",
	} {
		for size := 1; size <= len(text); size++ {
			var got strings.Builder
			h := &harmless{to: &got}
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if _, err := h.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if got.String() != want {
				t.Fatalf("%q in pieces of %d is written as %q, want %q", text, size, got.String(), want)
			}
		}
	}
}
