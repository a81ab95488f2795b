package table

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"
)

const id = "0196a1b2-0000-7000-8000-00000000000a"

func printed(t *testing.T, width int, fill func(*Table)) string {
	t.Helper()
	var out bytes.Buffer
	table := New(&out, width)
	fill(table)
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestListFitsTheTerminal(t *testing.T) {
	fill := func(t *Table) {
		t.Head("JOB", "TYPE~", "STATE", "AGE?", "TENANT?", "NOTE~")
		t.Row(id, "mail", "failed", "3s", "", "dial tcp 10.0.0.1:25: connection refused")
		t.Row(id, "mail", "queued", "12h", id, "")
	}
	for _, tt := range []struct {
		width int
		want  string
	}{
		{0, `
JOB                                   TYPE  STATE   AGE  TENANT                                NOTE
` + id + `  mail  failed  3s   -                                     dial tcp 10.0.0.1:25: connection refused
` + id + `  mail  queued  12h  ` + id + `  -
`},
		{80, `
JOB                                   TYPE  STATE   AGE  NOTE
` + id + `  mail  failed  3s   dial tcp 10.0.0.1:25: …
` + id + `  mail  queued  12h  -
`},
		{70, `
JOB                                   TYPE  STATE   NOTE
` + id + `  mail  failed  dial tcp 10.0.0.1…
` + id + `  mail  queued  -
`},
	} {
		got := printed(t, tt.width, fill)
		if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), got); diff != "" {
			t.Errorf("at %d columns (-want +got):\n%s", tt.width, diff)
		}
		for line := range strings.Lines(got) {
			if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); tt.width > 0 && w > tt.width {
				t.Errorf("a line of %d at %d columns: %s", w, tt.width, line)
			}
		}
	}
}

func TestCellThatDoesNotFitHasItsOwnLine(t *testing.T) {
	fill := func(t *Table) {
		t.Head("AGE", "ACTOR~", "ACTION", "OBJECT+", "AT?")
		t.Row("3s", "token/deploy", "class.changed", "tenant/"+id+"/class/reports", "2026-02-06T20:10:00.000Z")
		t.Row("4s", "token/deploy", "circuit.opened", "circuit/sync.bank", "2026-02-06T20:10:00.000Z")
		t.Row("5s", "x", "raised", "of 81 with its indent: "+id+" failed for good: it", "-")
	}
	want := `
AGE  ACTOR         ACTION          OBJECT
3s   token/deploy  class.changed
  tenant/` + id + `/class/reports
4s   token/deploy  circuit.opened  circuit/sync.bank
5s   x             raised
  of 81 with its indent: ` + id + ` failed for good:
  it
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), printed(t, 80, fill)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := printed(t, 0, fill); strings.Count(got, "\n") != 4 {
		t.Errorf("without a bound:\n%s", got)
	}
}

func TestFoldedTextKeepsCommandsWhole(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"short", "short"},
		{"lessor:   field: is wrong here", "lessor:   field: is\n  wrong here"},
		{"end it with `lessor jobs cancel x`, or not", "end it with\n  `lessor jobs cancel x`,\n  or not"},
		{"see http://127.0.0.1:5377/very/long and more", "see\n  http://127.0.0.1:5377/very/long\n  and more"},
		{"an ` alone is a mark that ends nothing", "an\n  ` alone is a mark that ends nothing"},
	} {
		if got := strings.Join(Fold(tt.text, 20, "  "), "\n"); got != tt.want {
			t.Errorf("%q is folded to\n%s\nwant\n%s", tt.text, got, tt.want)
		}
	}
}

func TestEmptyColumnsGoFirst(t *testing.T) {
	got := printed(t, 52, func(t *Table) {
		t.Head("JOB", "NOTE~", "TYPE?", "STATE")
		t.Row(id, "", "mail", "queued")
	})
	if want := "JOB                                   TYPE  STATE\n" + id + "  mail  queued\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestPagesOfAListHaveTheSameColumns(t *testing.T) {
	got := printed(t, 60, func(table *Table) {
		table.Head("JOB", "TYPE?", "STATE")
		table.Row(id, "a-very-long-type", "queued")
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		table.Row(id, "mail", "queued")
	})
	if strings.Contains(got, "mail") || strings.Count(got, "JOB") != 1 {
		t.Errorf("got\n%s", got)
	}
}

func TestListWithoutRowsIsEmpty(t *testing.T) {
	got := printed(t, 80, func(table *Table) {
		table.Row("node is ready")
		if table.Empty() {
			t.Error("one row is empty")
		}
		table.Head("JOB")
		if !table.Empty() {
			t.Error("a list without rows is not empty")
		}
	})
	if got != "node is ready\n" {
		t.Errorf("got %q", got)
	}
}

func TestIDsAreNeverCut(t *testing.T) {
	got := printed(t, 80, func(table *Table) {
		table.Head("FOLDER~", "STATUS", "ENGINE?", "REASON~", "NOTE~")
		table.Row(id, "fresh", "claude", "resumed_as "+id+" by hand and more", strings.Repeat("x", 40))
	})
	if strings.Count(got, id) != 2 || strings.Contains(got, "ENGINE") {
		t.Errorf("got %s", got)
	}
}

func TestLinesOfAValueStandBelowEachOther(t *testing.T) {
	got := printed(t, 80, func(t *Table) {
		t.Row("error", "boom\r\n  at \x1b[2Jmain.go:3\n")
		t.Row("attempts", "2")
		t.Row("one cell")
	})
	want := "error     boom\n            at \\x1b[2Jmain.go:3\nattempts  2\none cell\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestLongValuesAreFoldedBelowTheirLabel(t *testing.T) {
	fill := func(t *Table) {
		t.Row("type", "a-type-that-is-longer-than-a-line")
		t.Row("message", "reading page 12 of the ledger")
		t.Row("error", "boom\n  at main.go:3 in the deepest function")
		t.Row("payload", `{"name": "a name that is long"}`)
		t.Row("a line that has one cell, and is too long")
	}
	want := `
type     a-type-that-is-longer-than-a-line
message  reading page 12 of
         the ledger
error    boom
           at main.go:3 in
         the deepest function
payload  {"name": "a name that is long"}
a line that has one cell, and
is too long
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), printed(t, 29, fill)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := printed(t, 0, fill); strings.Count(got, "\n") != 6 {
		t.Errorf("without a bound:\n%s", got)
	}
}

func TestWideCharactersCountAsTwo(t *testing.T) {
	got := printed(t, 12, func(t *Table) {
		t.Head("NAME~", "N")
		t.Row("漢字漢字漢字", "1")
	})
	if want := "NAME       N\n漢字漢字…  1\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestSpansShowTheLargestUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0ms", 999 * time.Millisecond: "999ms", time.Second: "1s", 119 * time.Second: "119s",
		2 * time.Minute: "2m", 119 * time.Minute: "119m", 2 * time.Hour: "2h", 47 * time.Hour: "47h",
		48 * time.Hour: "2d", 400 * 24 * time.Hour: "400d",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestCleanRemovesControlSequences(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "grün ✓": "grün ✓", "a\x1b[2Jb": `a\x1b[2Jb`, "a\nb": `a\nb`, "a\tb": `a\tb`,
		"\u202eevil": `\u202eevil`, "\xff": `\xff`,
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}
