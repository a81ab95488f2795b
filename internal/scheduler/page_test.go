package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"lessor"
	"lessor/internal/rules"
)

func TestPagesOfDefinitionsAndOfTheAuditAreBoundedInBytes(t *testing.T) {
	large := json.RawMessage(make([]byte, maxPageBytes/4))
	definitions := make([]*rules.Definition, 10)
	audit := make([]lessor.Audited, 10)
	for i := range definitions {
		definitions[i], audit[i] = &rules.Definition{ID: "d", Payload: large}, lessor.Audited{
			Before: large, After: large,
		}
	}
	if n := fitting(definitions); n != 4 {
		t.Errorf("a page has %d definitions of a quarter of a page each, want 4", n)
	}
	if n := fitting(audit); n != 2 {
		t.Errorf("a page has %d entries of half a page each, want 2", n)
	}
	if n := fitting([]lessor.Audited{{Before: make(json.RawMessage, 2*maxPageBytes)}}); n != 1 {
		t.Errorf("a page has %d entries that are larger than a page, want 1", n)
	}
	here := func(*rules.Definition) string { return "here" }
	if _, next := cut(definitions, min(100, fitting(definitions)), here); next != "here" {
		t.Error("a page that is cut short has no cursor")
	}
}

func TestPagesOfHandlersAreBoundedInBytes(t *testing.T) {
	s := New(nil, Config{})
	if _, _, err := s.Handlers(1, ""); err == nil {
		t.Error("handlers are listed before they are known")
	}
	book := handlers{}
	const all, each = 700, 64 << 10
	for i := range all {
		id := fmt.Sprintf("handler-%d", i)
		book[id] = handler{Handler: lessor.Handler{
			HandlerID: id, Schema: make(json.RawMessage, each), UpdatedAt: lessor.Instant(1 + i%7),
		}}
	}
	s.handlers.Store(&book)
	seen, last := map[string]bool{}, lessor.Instant(math.MaxInt64)
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		page, next, err := s.Handlers(1000, cursor)
		if err != nil || len(page)*each > maxPageBytes || len(page) == 0 || pages > 3 {
			t.Fatalf("page %d has %d handlers of 64 KiB each: %v", pages, len(page), err)
		}
		for _, h := range page {
			if seen[h.HandlerID] || h.UpdatedAt > last {
				t.Fatalf("handler %s of %d stands behind one of %d, or twice", h.HandlerID, h.UpdatedAt, last)
			}
			seen[h.HandlerID], last = true, h.UpdatedAt
		}
		cursor = next
	}
	if len(seen) != all {
		t.Errorf("%d of %d handlers are listed", len(seen), all)
	}
}

// TestLargePagesAreReadInSteps lists entries of a quarter of a page each: at most one step too many is read.
func TestLargePagesAreReadInSteps(t *testing.T) {
	s, read := New(viewer{}, Config{}), 0
	list := func(_ View, last *lessor.Audited, n int) ([]lessor.Audited, error) {
		from := 0
		if last != nil {
			from = int(last.At)
		}
		page := make([]lessor.Audited, min(n, 100-from))
		for i := range page {
			page[i] = lessor.Audited{At: lessor.Instant(from + i + 1), Before: make(json.RawMessage, maxPageBytes/4)}
		}
		read += len(page)
		return page, nil
	}
	page, next, err := largePageOf(t.Context(), s, "list", 90,
		func(e lessor.Audited) string { return fmt.Sprint(int64(e.At)) }, list)
	if err != nil || len(page) != 4 || next != "4" || read > listStep {
		t.Errorf("a page of %d entries ends at %q after %d were read, %v; want 4 of at most %d", len(
			page,
		), next, read, err, listStep)
	}
}

// viewer is an empty store.
type viewer struct{ Store }

func (viewer) View(_ context.Context, fn func(View) error) error { return fn(nil) }
