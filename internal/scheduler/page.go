package scheduler

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"lessor"
	"lessor/internal/rules"
)

// Named is a place in a list that is newest first. Entries of the same instant are in the order of the bytes of their
// names, the largest first.
type Named struct {
	At   lessor.Instant
	Name string
}

// PlaceOfDefinition is where a definition stands among all.
func PlaceOfDefinition(d *rules.Definition) *Named { return &Named{d.CreatedAt, d.ID} }

// PlaceOfCircuit is where a circuit stands among all. One that never opened is the last.
func PlaceOfCircuit(c *rules.Circuit) *Named { return &Named{c.OpenedAt, c.Definition} }

// cursor returns an opaque cursor that needs no escaping in a query.
func (n *Named) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(int64(n.At), 10) + " " + n.Name))
}

// namedCursor reads a cursor of Named; nil begins with the newest.
func namedCursor(s string) (*Named, error) {
	if s == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, rules.BadCursor()
	}
	at, name, ok := strings.Cut(string(text), " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return nil, rules.BadCursor()
	}
	return &Named{lessor.Instant(ms), name}, nil
}

// pageOf reads a list of one more than a page holds, and returns the page and the cursor of the next ("" at the end).
func pageOf[T any](
	ctx context.Context, s *Scheduler, verb string, limit int, cursor func(T) string, read func(View) ([]T, error),
) ([]T, string, error) {
	var list []T
	err := s.view(ctx, verb, func(v View) (err error) {
		list, err = read(v)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	page, next := cut(list, min(limit, fitting(list)), cursor)
	return page, next, nil
}

// largePageOf is pageOf of entries that may be large: no more than listStep are read at a time, so that not much more
// is read than a page may carry. read returns up to n entries after the last (nil: from where the page begins).
func largePageOf[T any](
	ctx context.Context, s *Scheduler, verb string, limit int, cursor func(T) string,
	read func(v View, last *T, n int) ([]T, error),
) ([]T, string, error) {
	var list []T
	err := s.view(ctx, verb, func(v View) error {
		list = nil
		for last := (*T)(nil); len(list) <= limit && fitting(list) == len(list); last = &list[len(list)-1] {
			n := min(listStep, limit+1-len(list))
			more, err := read(v, last, n)
			if list = append(list, more...); err != nil || len(more) < n {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	page, next := cut(list, min(limit, fitting(list)), cursor)
	return page, next, nil
}

// fitting returns how many of a list a page may hold by their bytes: at least one.
func fitting[T any](list []T) int {
	bytes := 0
	for i := range list {
		switch v := any(list[i]).(type) {
		case *rules.Definition:
			bytes += len(v.Payload)
		case lessor.Audited:
			bytes += len(v.Before) + len(v.After)
		case lessor.Handler:
			bytes += len(v.Schema)
		case lessor.Alert:
			bytes += len(v.Message) + len(v.Subject)
		}
		if bytes > maxPageBytes {
			return max(1, i)
		}
	}
	return len(list)
}

// cut returns the first page of a list, and the cursor of the next ("" at the end).
func cut[T any](list []T, limit int, cursor func(T) string) ([]T, string) {
	if len(list) <= limit {
		return append([]T{}, list...), "" // an empty page is [], not null
	}
	return list[:limit], cursor(list[limit-1])
}

// each returns what show makes of each.
func each[T, S any](list []T, show func(T) S) []S {
	out := make([]S, len(list))
	for i := range list {
		out[i] = show(list[i])
	}
	return out
}
