package client

import (
	"context"
	"iter"
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

// AllOutput returns what an attempt of a job printed from an offset on, in pieces that all have data, up to what there
// is now. With follow it also returns what is printed from now on, goes on with the attempts that come after if q names
// none, and ends when there can be no more; it waits for servers that are away. When the Fence of a piece differs from
// that of the piece before, another attempt begins.
func (c *Client) AllOutput(
	ctx context.Context, id lessor.JobID, q lessor.OutputQuery, follow bool,
) iter.Seq2[lessor.Output, error] {
	return func(yield func(lessor.Output, error) bool) {
		var wait time.Duration
		if follow {
			wait = maxHold
		}
		fence, final := int64(0), false
		for failures := 0; ; {
			out, err := c.Output(ctx, id, q, wait)
			if again, _ := repeatable(err); follow && again && ctx.Err() == nil {
				failures++
				pause(ctx, roundPause(failures, err))
				continue
			}
			if err != nil {
				yield(lessor.Output{}, err)
				return
			}
			if failures = 0; fence != 0 && out.Fence != fence { // what was read is of another attempt
				fence, q.Offset = out.Fence, 0
				continue
			}
			if fence = out.Fence; len(out.Data) > 0 && !yield(out, nil) {
				return
			}
			q.Offset = out.NextOffset
			switch {
			case (!follow || final) && len(out.Data) == 0:
				return
			case follow && out.Ended && !final:
				more, err := c.moreAttempts(ctx, id, q)
				if err != nil {
					yield(lessor.Output{}, err)
					return
				}
				final = !more // one more look: the last attempt may have begun and ended meanwhile
			}
		}
	}
}

// moreAttempts reports whether a job whose last attempt is over may have another, after a pause.
func (c *Client) moreAttempts(ctx context.Context, id lessor.JobID, q lessor.OutputQuery) (bool, error) {
	if q.Attempt != 0 {
		return false, nil
	}
	job, err := c.AwaitJob(ctx, id, lookAgain)
	if again, _ := repeatable(err); again && ctx.Err() == nil {
		return pause(ctx, lookAgain), nil
	}
	return !job.Final(), err
}

// lookAgain is the pause before the next attempt of a job is looked for.
const lookAgain = time.Second
