package dashboard

import (
	"regexp"
	"strings"
	"testing"
)

var colourCodes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// FuzzColour checks that no output of a command becomes more than its text in one of our few classes.
func FuzzColour(f *testing.F) {
	for _, text := range []string{
		"plain", "\x1b[31mred\x1b[0m", "\x1b[1;92mgood\x1b[22m", "a\r\n\x1b[m", "\x1b[38;5;196mdeep", "\x1b[2J",
		"cut \x1b[3",
		"\x1b[31\" onload=\"x\x1b[32m", "\x1b[99999999999999999999m", "\x1b[;;;m", "\x1b]0;title\x07", "\x1b[\x1b[1m",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, plain := "", ""
		for _, span := range colour(text, false) {
			all += span.Text
			for class := range strings.FieldsSeq(span.Class) {
				if class != "bold" && (len(class) != 2 || class[0] != 'c' || class[1] < '0' || class[1] > '7') {
					t.Errorf("%q has the class %q", text, class)
				}
			}
		}
		for _, span := range colour(text, true) {
			plain += span.Text
			if span.Class != "" {
				t.Errorf("%q without colours has the class %q", text, span.Class)
			}
		}
		text = colourCodes.ReplaceAllString(text, "")
		if all != plain || strings.ReplaceAll(all, "\r", "") != strings.ReplaceAll(text, "\r", "") {
			t.Errorf("%q is shown as %q, and without colours as %q", text, all, plain)
		}
	})
}
