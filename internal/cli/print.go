package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"lessor"
	"lessor/internal/indent"
)

// maxIndented bounds the size of an indented document in bytes; a larger one is printed without indentation.
const maxIndented = 16 << 20

// printJSON prints v as one document, indented.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := a.Out.Write(append(indented(bytes.TrimSpace(b.Bytes()), ""), '\n'))
	return err
}

func indented(raw []byte, prefix string) []byte {
	if text, whole := indent.JSON(raw, prefix, maxIndented); whole {
		return text
	}
	return raw
}

// say prints one line.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.Out, format+"\n", args...) }

// note prints one line on standard error.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.Err, "lessor: "+format+"\n", args...) }

// table prints aligned columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer) table { return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

func (t table) row(cells ...string) {
	for i, c := range cells {
		if c = clean(c); c == "" {
			c = "-"
		}
		cells[i] = c
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t table) flush() error { return t.w.Flush() }

// clean escapes control characters in text from jobs and workers, which could otherwise rewrite the reader's terminal.
func clean(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}

// age says how long ago an instant is, in its largest unit.
func age(i lessor.Instant, now time.Time) string {
	if i.IsZero() {
		return "-"
	}
	return span(now.Sub(i.Time()))
}

// until says how far an instant lies in the future.
func until(i lessor.Instant, now time.Time) string {
	if i.IsZero() {
		return "-"
	}
	if d := i.Time().Sub(now); d > 0 {
		if d > time.Second {
			d = d.Round(time.Second) // the call took some milliseconds: a lease of 60s must not show as 59s
		}
		return "in " + span(d)
	}
	return "now"
}

// ago says how far an instant lies in the past, or in the future.
func ago(i lessor.Instant, now time.Time) string {
	if i.Time().After(now) {
		return until(i, now)
	}
	return age(i, now) + " ago"
}

func span(d time.Duration) string {
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

// tenantName returns the id of a tenant, "-" for none.
func tenantName(t lessor.TenantID) string {
	if t.IsZero() {
		return "-"
	}
	return t.String()
}

// text returns the string that p points to, "" for nil.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// idText returns the id that p points to, "" for nil.
func idText[T fmt.Stringer](p *T) string {
	if p == nil {
		return ""
	}
	return (*p).String()
}

// millis shows a number of milliseconds.
func millis(n int64) string { return span(time.Duration(n) * time.Millisecond) }
