package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor/client"
	"lessor/internal/plainjson"
)

// maxPage is the largest page of the API.
const maxPage = 1000

// listFlags say how much of a list is shown.
type listFlags struct {
	limit  int
	cursor string
	all    bool
}

func (f *listFlags) add(cmd *cobra.Command, noun string) {
	wholeVar(cmd, &f.limit, "limit", 100, "show at most this many "+noun)
	cmd.Flags().StringVar(&f.cursor, "cursor", "", "continue where an earlier list ended")
	cmd.Flags().BoolVar(&f.all, "all", false, "show all "+noun)
	cmd.MarkFlagsMutuallyExclusive("limit", "all")
}

// camelCursor is the name of the cursor in the lists below /kernel and /admin.
const camelCursor = "nextCursor"

// list is a list of the API: how to read it and how to show it.
type list[T any] struct {
	name   string        // name of the list in JSON
	noun   string        // name of its entries in texts; "" = name
	hint   func() string // what may be meant if there are none; nil = nothing
	cursor string        // name of the cursor in JSON; "" = next_cursor
	whole  bool          // the API returns it in one page, so there are no flags for pages
	header []string      // with the marks of table.Table.Head
	row    func(item T, now time.Time) []string
	// pages decodes flags and arguments.
	pages func(args []string) (pager[T], error)
}

// pager reads one page. A method expression like (*client.Client).Circuits is one.
type pager[T any] = func(c *client.Client, ctx context.Context, limit int, cursor string) ([]T, string, error)

// unfiltered is pages for a list with nothing to decode.
func unfiltered[T any](p pager[T]) func([]string) (pager[T], error) {
	return func([]string) (pager[T], error) { return p, nil }
}

// onePage is pages for a list that the API returns whole.
func onePage[T any](read func(*client.Client, context.Context) ([]T, error)) func([]string) (pager[T], error) {
	return unfiltered(func(c *client.Client, ctx context.Context, _ int, _ string) ([]T, string, error) {
		items, err := read(c, ctx)
		return items, "", err
	})
}

// bind makes cmd show the list.
func (l list[T]) bind(a *app, cmd *cobra.Command) {
	f := listFlags{limit: maxPage, all: true}
	if !l.whole {
		f.add(cmd, cmp.Or(l.noun, l.name))
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		page, err := l.pages(args)
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		return l.show(a, f, func(limit int, cursor string) ([]T, string, error) {
			return page(c, cmd.Context(), limit, cursor)
		})
	})
}

// binder returns bind for a list that has no flags of its own.
func (l list[T]) binder(a *app) func(*cobra.Command) {
	return func(cmd *cobra.Command) { l.bind(a, cmd) }
}

// withList makes cmd a list, and adds a subcommand named list that does the same.
func withList(cmd *cobra.Command, short, example string, bind func(*cobra.Command)) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: short, Example: example}
	bind(cmd)
	bind(list)
	cmd.AddCommand(list)
	return cmd
}

// show prints the list page by page, because it may be too long for memory: a table, or one JSON object in the shape of
// the API.
func (l list[T]) show(a *app, f listFlags, page func(limit int, cursor string) ([]T, string, error)) error {
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
		items, next, err := page(want, cursor)
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

// printer prints one page; with the last one it ends the list.
type printer[T any] func(items []T, next string, last bool) error

func (l list[T]) tablePrinter(a *app) printer[T] {
	t, empty, now := a.table(), true, time.Now()
	t.Head(l.header...)
	return func(items []T, next string, last bool) error {
		for _, item := range items {
			t.Row(l.row(item, now)...)
		}
		if len(items) > 0 {
			empty = false
			if err := t.Flush(); err != nil {
				return err
			}
		}
		if last && empty {
			hint := ""
			if l.hint != nil {
				hint = l.hint()
			}
			a.note("no %s%s", cmp.Or(l.noun, l.name), hint)
		}
		if last && next != "" {
			a.note("there are more: --all, or --cursor %s", next)
		}
		return nil
	}
}

func (l list[T]) jsonPrinter(a *app) printer[T] {
	begin := fmt.Sprintf("{\n  %q: [", l.name)
	return func(items []T, next string, last bool) error {
		for _, item := range items {
			data, err := plainjson.Marshal(item)
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
