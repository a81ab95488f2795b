// Package table prints rows for people: aligned, fitted to the width of a terminal, and free of control characters.
//
// The command and its live view use it. It knows nothing of jobs.
package table

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

const (
	gap     = 2  // spaces between columns
	legible = 16 // a column is left out rather than that another is cut below this
	least   = 6  // no column is cut below this
)

// Table collects rows and prints them aligned.
type Table struct {
	None string // what the caller says of a list without rows

	out    io.Writer
	width  int
	above  []string // lines above a list
	head   []string
	begun  bool  // the head was printed
	chosen []int // the columns of the list
	rows   [][]string
}

// New returns a table that prints to out. It fits into width characters, as far as it can; 0 is unlimited.
func New(out io.Writer, width int) *Table { return &Table{out: out, width: width} }

// Head begins a list with these columns, below the rows so far. If the list is too wide, it leaves out the columns that
// are empty, then those whose names end in "?", from right to left, and cuts those whose names end in "~" or "~?". It
// cuts no id: people copy them. A cell of a column whose name ends in "+" is shown whole, on lines of its own if need
// be.
func (t *Table) Head(names ...string) { t.above, t.rows, t.head = t.fields(), nil, names }

// Row adds a row. An empty cell is shown as "-". Outside a list, the lines of the last cell stand below each other,
// and lines that are too wide are folded between words; JSON stays whole, because people copy it.
func (t *Table) Row(cells ...string) {
	if last := len(cells) - 1; t.head == nil && strings.Contains(cells[last], "\n") {
		lines := strings.Split(strings.TrimRight(strings.ReplaceAll(cells[last], "\r\n", "\n"), "\n"), "\n")
		t.Row(append(slices.Clone(cells[:last]), lines[0])...)
		for _, line := range lines[1:] {
			t.rows = append(t.rows, append(make([]string, last), Clean(line)))
		}
		return
	}
	row := make([]string, len(cells))
	for i, c := range cells {
		if row[i] = Clean(c); c == "" {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

// Empty reports whether the table is a list without rows, of which Flush prints nothing.
func (t *Table) Empty() bool { return t.head != nil && !t.begun && len(t.rows) == 0 }

// Flush prints the rows. Rows that are added later continue the list with the same
// columns.
func (t *Table) Flush() error {
	lines := t.above
	switch {
	case t.head == nil:
		lines = t.fields()
	case t.begun:
		lines = fit(t.head, t.rows, t.chosen, t.width)[1:]
	case len(t.rows) == 0:
	default:
		t.chosen, t.begun = choose(t.head, t.rows, t.width), true
		lines = append(lines, fit(t.head, t.rows, t.chosen, t.width)...)
	}
	t.rows = nil
	for _, line := range lines {
		if _, err := io.WriteString(t.out, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the lines of rows outside a list.
func (t *Table) fields() (lines []string) {
	for n, line := range align(t.rows, nil) {
		text := t.rows[n][len(t.rows[n])-1]
		label := strings.TrimSuffix(line, text)
		left := lipgloss.Width(label)
		if t.width-left < legible || lipgloss.Width(line) <= t.width || strings.IndexAny(text, `{["`) == 0 {
			lines = append(lines, line)
			continue
		}
		for i, part := range Fold(text, t.width-left, "") {
			if i > 0 {
				label = strings.Repeat(" ", left)
			}
			lines = append(lines, label+part)
		}
	}
	return lines
}

// Lines returns the head and the rows of a list that fits into width characters. The cells must be clean.
func Lines(head []string, rows [][]string, width int) []string {
	return fit(head, rows, choose(head, rows, width), width)
}

// choose returns the columns that fit into width.
func choose(head []string, rows [][]string, width int) (columns []int) {
	for i := range head {
		columns = append(columns, i)
	}
	fits := func() bool {
		need := -gap
		for _, i := range columns {
			w := widthOf(head, rows, i)
			if strings.Contains(head[i], "~") {
				w = min(w, max(legible, idEnd(rows, i)))
			}
			need += w + gap
		}
		return width <= 0 || need <= width
	}
	if !fits() {
		columns = slices.DeleteFunc(columns, func(i int) bool {
			return len(rows) > 0 && !slices.ContainsFunc(rows, func(r []string) bool { return r[i] != "-" })
		})
	}
	for n := len(columns) - 1; n >= 0 && !fits(); n-- {
		if strings.Contains(head[columns[n]], "?") {
			columns = slices.Delete(columns, n, n+1)
		}
	}
	return columns
}

// narrow returns the widths of the columns of a list that fits into width, as far as it can. Whole cells of a column
// that ends in "+" count, or only its title.
func narrow(head []string, rows [][]string, columns []int, width int, whole bool) (widths []int, fits bool) {
	widths = make([]int, len(columns))
	excess := -gap - width
	for n, i := range columns {
		if widths[n] = widthOf(head, rows, i); strings.Contains(head[i], "+") && !whole {
			widths[n] = len(title(head[i]))
		}
		excess += widths[n] + gap
	}
	for ; width > 0 && excess > 0; excess-- {
		widest := -1
		for n, i := range columns {
			if strings.Contains(head[i], "~") && widths[n] > idEnd(rows, i) &&
				(widest < 0 || widths[n] > widths[widest]) {
				widest = n
			}
		}
		if widest < 0 || widths[widest] <= least {
			return widths, false
		}
		widths[widest]--
	}
	if last := len(columns) - 1; width > 0 && last >= 0 && strings.Contains(head[columns[last]], "+") {
		widths[last] -= excess // the last column has what is left
	}
	return widths, true
}

// fit returns the lines of a list, with cells cut so that they fit into width.
func fit(head []string, rows [][]string, columns []int, width int) []string {
	widths, fits := narrow(head, rows, columns, width, true)
	if !fits {
		widths, _ = narrow(head, rows, columns, width, false)
	}
	shown, below := make([][]string, 0, len(rows)+1), map[int]string{}
	for _, row := range append([][]string{titles(head)}, rows...) {
		cells := make([]string, len(columns))
		for n, i := range columns {
			cells[n] = cut(row[i], widths[n])
			if strings.Contains(head[i], "+") && cells[n] != row[i] {
				cells[n], below[len(shown)] = "", row[i]
			}
		}
		shown = append(shown, cells)
	}
	lines := make([]string, 0, len(shown)+len(below))
	for n, line := range align(shown, widths) {
		if lines = append(lines, line); below[n] != "" {
			lines[len(lines)-1] = strings.TrimRight(line, " ")
			lines = append(lines, Fold("  "+below[n], width, "  ")...)
		}
	}
	return lines
}

var idForm = regexp.MustCompile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

// idEnd returns the width up to the end of the last id in the cells of a column, 0 without one.
func idEnd(rows [][]string, i int) (end int) {
	for _, r := range rows {
		for _, at := range idForm.FindAllStringIndex(r[i], -1) {
			w := lipgloss.Width(r[i][:at[1]])
			if at[1] < len(r[i]) {
				w++ // the ellipsis
			}
			end = max(end, w)
		}
	}
	return end
}

func titles(head []string) []string {
	names := make([]string, len(head))
	for i, name := range head {
		names[i] = title(name)
	}
	return names
}

func title(name string) string { return strings.TrimRight(name, "?~+") }

func widthOf(head []string, rows [][]string, i int) int {
	w := len(title(head[i]))
	for _, r := range rows {
		w = max(w, lipgloss.Width(r[i]))
	}
	return w
}

// align pads the cells of each column to the same width, except the last of a row. Nil widths are measured: rows of
// one cell do not count.
func align(rows [][]string, widths []int) []string {
	if widths == nil {
		for _, row := range rows {
			for i, cell := range row[:len(row)-1] {
				if i == len(widths) {
					widths = append(widths, 0)
				}
				widths[i] = max(widths[i], lipgloss.Width(cell))
			}
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row[:len(row)-1] {
			b.WriteString(cell + strings.Repeat(" ", widths[i]-lipgloss.Width(cell)+gap))
		}
		lines[n] = b.String() + row[len(row)-1]
	}
	return lines
}
