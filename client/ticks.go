package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"lessor"
)

// Trigger makes a job of a definition now, also of one that is paused, and returns its id.
func (c *Client) Trigger(ctx context.Context, id string) (lessor.JobID, error) {
	var answer struct {
		RunID lessor.JobID `json:"runId"`
	}
	_, err := c.do(ctx, call{method: http.MethodPost, path: definitionPath(id, "/trigger"), body: struct{}{}}, &answer)
	return answer.RunID, err
}

// Backfill makes the jobs of the past ticks from..to that have none, at most 1000, and returns how many it made. It
// may be repeated: a tick that has its job gets no second one.
func (c *Client) Backfill(ctx context.Context, id string, from, to lessor.Instant) (created int, err error) {
	var answer struct {
		Created int `json:"created"`
	}
	_, err = c.do(ctx, call{method: http.MethodPost, path: definitionPath(id, "/backfill"), body: struct {
		From lessor.Instant `json:"from"`
		To   lessor.Instant `json:"to"`
	}{from, to}}, &answer)
	return answer.Created, err
}

// NextTicks returns the next ticks of a definition, 1 to 100, also of one that is paused. Zero means five.
func (c *Client) NextTicks(ctx context.Context, id string, count int) ([]lessor.Instant, error) {
	q := url.Values{}
	if count != 0 {
		q.Set("count", strconv.Itoa(count))
	}
	var answer struct {
		Next []lessor.Instant `json:"next"`
	}
	_, err := c.read(ctx, definitionPath(id, "/next"), q, maxObject, &answer)
	return answer.Next, err
}

// Ticks returns one page of what became of a definition's ticks, oldest first, and the cursor of the next page, "" at
// the end.
func (c *Client) Ticks(
	ctx context.Context, id string, f lessor.TickFilter,
) (ticks []lessor.Tick, next string, err error) {
	q := page(f.Limit, f.Cursor)
	for name, at := range map[string]lessor.Instant{"from": f.From, "to": f.To} {
		if !at.IsZero() {
			q.Set(name, at.String())
		}
	}
	return kernelPage[lessor.Tick](ctx, c, "/jobs/"+url.PathEscape(id)+"/ticks", "ticks", q)
}

// AllTicks returns all ticks that match f, page by page. It ends at the first error.
func (c *Client) AllTicks(ctx context.Context, id string, f lessor.TickFilter) iter.Seq2[lessor.Tick, error] {
	return eachPage(f.Cursor, func(cursor string) ([]lessor.Tick, string, error) {
		f.Cursor = cursor
		return c.Ticks(ctx, id, f)
	})
}
