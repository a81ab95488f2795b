package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// maxPage is the largest page that a list may be asked for.
const maxPage = 1000

// read is a GET: safe to repeat.
func (c *Client) read(ctx context.Context, path string, q url.Values, limit int64, into any) (status int, err error) {
	return c.do(ctx, call{method: http.MethodGet, path: path, query: q, safe: true, limit: limit}, into)
}

func page(limit int, cursor string) url.Values {
	q := url.Values{}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	set(q, "cursor", cursor)
	return q
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

var errSameCursor = errors.New("the server's cursor does not advance")

// eachPage walks a list from cursor on.
func eachPage[T any](cursor string, list func(cursor string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			items, next, err := list(cursor)
			if err == nil && next != "" && next == cursor {
				err = errSameCursor // it would never end
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}
