package cli

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// maxPage is the largest page of the API.
const maxPage = 1000

// listFlags say how much of a list is shown.
type listFlags struct {
	limit  int
	cursor string
	all    bool
}

func (f *listFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().IntVar(&f.limit, "limit", 100, "show at most this many "+what)
	cmd.Flags().StringVar(&f.cursor, "cursor", "", "go on where an earlier list ended")
	cmd.Flags().BoolVar(&f.all, "all", false, "show all "+what)
	cmd.MarkFlagsMutuallyExclusive("limit", "all")
}

// kernelCursor is how the kernel's lists call their cursor.
const kernelCursor = "nextCursor"

// list is a list of the API: how to read it and how to show it.
type list[T any] struct {
	name   string // of the list in JSON
	noun   string // what people call its entries; "" = name
	cursor string // of the cursor in JSON; "" = next_cursor
	header []string
	row    func(T) []string
	page   func(limit int, cursor string) (items []T, next string, err error)
}

// show prints the list page by page, so that a long one needs no memory: a table, or one JSON object in the API's shape.
func (l list[T]) show(a *app, f listFlags) error {
	if f.limit < 1 {
		return usagef("--limit %d: allowed is 1 or more", f.limit)
	}
	put := l.tablePrinter(a)
	if a.json {
		put = l.jsonPrinter(a)
	}
	cursor := f.cursor
	for left := f.limit; ; {
		want := min(left, maxPage)
		if f.all {
			want = maxPage
		}
		items, next, err := l.page(want, cursor)
		if err != nil {
			return err
		}
		left -= len(items)
		last := next == "" || next == cursor || !f.all && left <= 0
		if err := put(items, next, last); err != nil || last {
			return err
		}
		cursor = next
	}
}

// printer shows one page; the last one also ends the list.
type printer[T any] func(items []T, next string, last bool) error

func (l list[T]) tablePrinter(a *app) printer[T] {
	t, none := newTable(a.Out), true
	return func(items []T, next string, last bool) error {
		if none && len(items) > 0 {
			t.row(l.header...)
			none = false
		}
		for _, item := range items {
			t.row(l.row(item)...)
		}
		if last && none {
			a.note("no %s", cmp.Or(l.noun, l.name))
		}
		if last && next != "" {
			a.note("there are more: --all, or --cursor %s", next)
		}
		return t.flush()
	}
}

func (l list[T]) jsonPrinter(a *app) printer[T] {
	begin := fmt.Sprintf("{\n  %q: [", l.name)
	return func(items []T, next string, last bool) error {
		for _, item := range items {
			data, err := json.Marshal(item)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "%s\n    %s", begin, indented(data, "    "))
			begin = ","
		}
		if !last {
			return nil
		}
		cursor := []byte("null")
		if next != "" {
			cursor, _ = json.Marshal(next) // a string can always be encoded
		}
		if begin == "," {
			begin = "\n  "
		}
		_, err := fmt.Fprintf(a.Out, "%s],\n  %q: %s\n}\n", begin, cmp.Or(l.cursor, "next_cursor"), cursor)
		return err
	}
}
