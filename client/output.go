package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"lessor"
	"lessor/internal/pause"
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
// another lease.
func (c *Client) Output(
	ctx context.Context, id lessor.JobID, q lessor.OutputQuery, wait time.Duration,
) (out lessor.Output, err error) {
	values := url.Values{
		"offset": {strconv.FormatInt(q.Offset, 10)}, "wait_ms": {strconv.FormatInt(wait.Milliseconds(), 10)},
	}
	set(values, "stream", q.Stream)
	for name, n := range map[string]int64{"attempt": q.Attempt, "fence": q.Fence} {
		if n != 0 {
			values.Set(name, strconv.FormatInt(n, 10))
		}
	}
	_, err = c.do(ctx, call{
		method: http.MethodGet, path: jobPath(id, "/output"), query: values, safe: true, hold: wait,
	}, &out)
	return out, err
}

// AllOutput returns what an attempt of a job printed from an offset on, in pieces that all have data, up to what there
// is now. If the attempt was given back, it begins with what it printed before, unless q has an offset or a fence. With
// follow it also returns what is printed from now on, goes on with the attempts that come after if q names none, and
// ends when there can be no more; it waits for servers that are away. When the Fence of a piece differs from that of
// the piece before, the output of another lease begins: of the same attempt, or of another.
func (c *Client) AllOutput(
	ctx context.Context, id lessor.JobID, q lessor.OutputQuery, follow bool,
) iter.Seq2[lessor.Output, error] {
	return func(yield func(lessor.Output, error) bool) {
		r := outputReader{Client: c, job: id, follow: follow, yield: yield}
		if err := r.all(ctx, q); err != nil {
			yield(lessor.Output{}, err)
		}
	}
}

type outputReader struct {
	*Client
	job    lessor.JobID
	follow bool
	yield  func(lessor.Output, error) bool
	done   bool // the caller wants no more
}

func (r *outputReader) all(ctx context.Context, q lessor.OutputQuery) error {
	began, final := false, false
	fence, wait := int64(0), time.Duration(0) // the output so far needs no wait
	for {
		out, err := r.next(ctx, q, wait)
		if err != nil {
			return err
		}
		if out.Fence != fence {
			if err := r.before(ctx, q, out, fence, began); err != nil || r.done {
				return err
			}
			if fence = out.Fence; began { // the offset is one of the lease before
				q.Offset = 0
				continue
			}
		}
		if began = true; r.follow {
			wait = maxHold
		}
		if len(out.Data) > 0 && !r.yield(out, nil) {
			return nil
		}
		q.Offset = out.NextOffset
		switch {
		case (!r.follow || final) && len(out.Data) == 0:
			return nil
		case r.follow && out.Ended && !final:
			more, err := r.moreAttempts(ctx, r.job, q)
			if err != nil {
				return err
			}
			final = !more // read once more: the last attempt may have begun and ended meanwhile
		}
	}
}

// next asks for output, with follow until a server answers.
func (r *outputReader) next(ctx context.Context, q lessor.OutputQuery, wait time.Duration) (lessor.Output, error) {
	for failures := 1; ; failures++ {
		out, err := r.Output(ctx, r.job, q, wait)
		if again, _ := repeatable(err); !r.follow || !again || ctx.Err() != nil {
			return out, err
		}
		pause.For(ctx, roundPause(failures, err))
	}
}

// before reads what was printed before the lease of out began: the rest of the lease with a fence, from q.Offset on,
// and the leases after it. Before anything was read these are the earlier leases of the same attempt.
func (r *outputReader) before(
	ctx context.Context, q lessor.OutputQuery, out lessor.Output, fence int64, began bool,
) error {
	if !began && q.Offset != 0 {
		return nil
	}
	for _, l := range out.Leases {
		other := l.Attempt != out.Attempt && (!began || q.Attempt != 0)
		if other || l.Fence < fence || l.Fence >= out.Fence || q.Fence != 0 {
			continue
		}
		past := lessor.OutputQuery{Fence: l.Fence, Stream: q.Stream}
		if l.Fence == fence {
			past.Offset = q.Offset
		}
		for {
			piece, err := r.next(ctx, past, 0)
			if err != nil {
				return err
			}
			if len(piece.Data) == 0 {
				break
			}
			if r.done = !r.yield(piece, nil); r.done {
				return nil
			}
			past.Offset = piece.NextOffset
		}
	}
	return nil
}

// moreAttempts reports whether a job whose last attempt is over may have another, or may go on with the one that q
// names because it was given back, after a pause.
func (c *Client) moreAttempts(ctx context.Context, id lessor.JobID, q lessor.OutputQuery) (bool, error) {
	if q.Fence != 0 {
		return false, nil
	}
	job, err := c.AwaitJob(ctx, id, nextAttemptPause)
	if again, _ := repeatable(err); again && ctx.Err() == nil {
		return pause.For(ctx, nextAttemptPause), nil
	}
	active := job.State == lessor.Leased || job.State == lessor.Running
	may := q.Attempt == 0 || int64(job.Attempt) < q.Attempt || active && int64(job.Attempt) == q.Attempt
	return may && !job.Final(), err
}

// nextAttemptPause is the pause between two checks whether a job has another attempt.
const nextAttemptPause = time.Second
