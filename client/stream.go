package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// stallLimit is how long a stream may be silent before it counts as lost. A server sends something at least every 15 s.
const stallLimit = time.Minute

var errStalled = errors.New("the stream went silent")

// open makes a call whose answer has no time limit. Reading it fails when it stays silent for stallLimit.
func (c *Client) open(
	ctx context.Context, base string, k call, header http.Header,
) (io.ReadCloser, http.Header, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.timeout+k.hold, func() { cancel(errTimeout) })
	resp, err := c.send(ctx, base, k, nil, header) //nolint:bodyclose // closed by body.Close
	if err != nil {
		timer.Stop()
		cancel(nil)
		return nil, nil, err
	}
	timer.Stop()
	b := &body{ctx: ctx, cancel: cancel, from: resp.Body}
	b.timer = time.AfterFunc(stallLimit, func() { cancel(errStalled) })
	return b, resp.Header, nil
}

// body is an answer that is read while it arrives.
type body struct {
	ctx    context.Context // its cause says why reading failed
	cancel context.CancelCauseFunc
	timer  *time.Timer
	from   io.ReadCloser
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.timer.Reset(stallLimit)
	if err != nil && err != io.EOF && errors.Is(context.Cause(b.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

func (b *body) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.from.Close()
}
