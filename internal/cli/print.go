package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"lessor"
	"lessor/internal/indent"
	"lessor/internal/plainjson"
	"lessor/internal/table"
)

// maxIndented bounds the size of an indented document in bytes; a larger one is printed without indentation.
const maxIndented = 16 << 20

// printJSON prints v as one document, indented.
func (a *app) printJSON(v any) error {
	raw, err := plainjson.Marshal(v)
	if err == nil {
		_, err = a.Out.Write(append(indented(raw, ""), '\n'))
	}
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

// note prints one line on standard error. A terminal shows it on as many lines as it needs.
func (a *app) note(format string, args ...any) {
	line := "lessor: " + fmt.Sprintf(format, args...)
	if width := widthOf(a.Err); width > 0 {
		line = strings.Join(table.Fold(line, width, "  "), "\n")
	}
	fmt.Fprintln(a.Err, line)
}

// widthOf returns the width of a terminal, 0 if out is none.
func widthOf(out io.Writer) (columns int) {
	if file, ok := out.(*os.File); ok {
		columns, _, _ = term.GetSize(file.Fd())
	}
	return columns
}

// table returns a table that fits into the terminal, if there is one, or into COLUMNS.
func (a *app) table() *table.Table {
	columns, err := strconv.Atoi(a.getenv("COLUMNS"))
	if err != nil {
		columns = widthOf(a.Out)
	}
	return table.New(a.Out, columns)
}

// age says how long ago an instant is, in its largest unit.
func age(i lessor.Instant, now time.Time) string {
	if i.IsZero() {
		return "-"
	}
	return table.Span(now.Sub(i.Time()))
}

// until says how far an instant lies in the future.
func until(i lessor.Instant, now time.Time) string {
	if i.IsZero() {
		return "-"
	}
	d := i.Time().Sub(now)
	switch {
	case d <= 0:
		return "now"
	case d == math.MaxInt64: // as much as a duration holds
		return "in over 292 years"
	case d > time.Second:
		d = d.Round(time.Second) // the call took some milliseconds: a lease of 60s must not show as 59s
	}
	return "in " + table.Span(d)
}

// ago says how far an instant lies in the past, or in the future.
func ago(i lessor.Instant, now time.Time) string {
	if i.IsZero() || i.Time().After(now) {
		return until(i, now)
	}
	return age(i, now) + " ago"
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
func millis(n int64) string { return table.Span(time.Duration(n) * time.Millisecond) }
