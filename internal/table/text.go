package table

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// cut shortens s to width characters; an ellipsis stands for the rest.
func cut(s string, width int) string {
	if lipgloss.Width(s) <= width {
		return s
	}
	used := 0
	for i, r := range s {
		if used += lipgloss.Width(string(r)); used >= width {
			return s[:i] + "…"
		}
	}
	return s
}

// Fold breaks text into lines of at most width characters, between words. What stands in backquotes is one word, so
// that a command can be copied; a longer word has a line of its own. Lines but the first begin with indent.
func Fold(text string, width int, indent string) []string {
	var words []string
	for word := range strings.SplitSeq(text, " ") {
		if last := len(words) - 1; last >= 0 && strings.Count(words[last], "`")%2 == 1 {
			words[last] += " " + word
			continue
		}
		words = append(words, word)
	}
	lines := words[:1]
	for _, word := range words[1:] {
		last := len(lines) - 1
		if lipgloss.Width(lines[last])+1+lipgloss.Width(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, indent+word)
	}
	return lines
}

// Clean escapes control characters in text from jobs and workers, which could otherwise rewrite the reader's terminal.
func Clean(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}

// Span shows a duration in its largest unit.
func Span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
