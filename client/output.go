package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"lessor"
)

// Print sends a part of what the attempt under a lease prints. It does not extend the lease. A chunk that is sent again
// changes nothing.
func (c *Client) Print(
	ctx context.Context, id lessor.LeaseID, r lessor.OutputReport,
) (answer lessor.OutputAnswer, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: leasePath(id, "/output"), body: r, safe: true}, &answer)
	return answer, err
}

// Output returns a piece of what an attempt of a job printed. If there is none behind the offset, it waits for some up
// to wait, which is at most 30 s. To read on, ask from NextOffset; if the Fence has changed, the answer is that of
// another attempt.
func (c *Client) Output(
	ctx context.Context, id lessor.JobID, q lessor.OutputQuery, wait time.Duration,
) (out lessor.Output, err error) {
	values := url.Values{
		"offset": {strconv.FormatInt(q.Offset, 10)}, "wait_ms": {strconv.FormatInt(wait.Milliseconds(), 10)},
	}
	set(values, "stream", q.Stream)
	if q.Attempt != 0 {
		values.Set("attempt", strconv.FormatInt(q.Attempt, 10))
	}
	_, err = c.do(ctx, call{
		method: http.MethodGet, path: jobPath(id, "/output"), query: values, safe: true, hold: wait,
	}, &out)
	return out, err
}
