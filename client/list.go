package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"lessor"
)

// maxPage is the largest page that a list may be asked for.
const maxPage = 1000

// get reads one value. It is safe to repeat.
func get[T any](ctx context.Context, c *Client, path string, q url.Values, limit int64) (v T, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: path, query: q, safe: true, limit: limit}, &v)
	return v, err
}

// send makes a call that must not be repeated once a server may have received it. A nil body is sent as {}.
func send[T any](ctx context.Context, c *Client, method, path string, body any) (v T, err error) {
	if body == nil {
		body = struct{}{}
	}
	_, err = c.do(ctx, call{method: method, path: path, body: body}, &v)
	return v, err
}

// list reads one page of a list whose entries are in the field name, and returns the cursor of the next page.
func list[T any](ctx context.Context, c *Client, path, name string, q url.Values) (items []T, next string, err error) {
	answer, err := get[map[string]json.RawMessage](ctx, c, path, q, maxList)
	if err != nil {
		return nil, "", err
	}
	var camel, snake string // the two parts of the API spell the cursor differently
	for field, into := range map[string]any{name: &items, "nextCursor": &camel, "next_cursor": &snake} {
		if raw := answer[field]; raw != nil {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, "", fmt.Errorf("decode %s of %s: %w", field, path, err)
			}
		}
	}
	return items, cmp.Or(camel, snake), nil
}

// page returns the query of one page.
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

func setTenant(q url.Values, name string, tenant *lessor.TenantID) {
	if tenant != nil {
		q.Set(name, tenant.String())
	}
}

var errSameCursor = errors.New("the server's cursor does not advance")

// eachPage returns the entries of all pages from cursor on. It ends at the first error.
func eachPage[T any](cursor string, list func(cursor string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			items, next, err := list(cursor)
			if err == nil && next != "" && next == cursor {
				err = errSameCursor // the loop would never end
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

// collect reads a whole list.
func collect[T any](ctx context.Context, c *Client, path, name string) (all []T, err error) {
	for item, err := range eachPage("", func(cursor string) ([]T, string, error) {
		return list[T](ctx, c, path, name, page(0, cursor))
	}) {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
