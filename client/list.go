package client

import (
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

func setTenant(q url.Values, tenant *lessor.TenantID) {
	if tenant != nil {
		q.Set("tenantId", tenant.String())
	}
}

// kernelPage reads one page of a list of the kernel, which calls its entries name.
func kernelPage[T any](
	ctx context.Context, c *Client, path, name string, q url.Values,
) (items []T, next string, err error) {
	var answer map[string]json.RawMessage
	if _, err := c.read(ctx, kernel+path, q, maxList, &answer); err != nil {
		return nil, "", err
	}
	for field, into := range map[string]any{name: &items, "nextCursor": &next} {
		if raw := answer[field]; raw != nil {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, "", fmt.Errorf("decode %s of %s: %w", field, path, err)
			}
		}
	}
	return items, next, nil
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
