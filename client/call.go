package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"lessor"
	"lessor/internal/pause"
)

// The prefixes of the routes.
const (
	scheduler = "/api/system/scheduler"
	kernel    = "/api/kernel"
	admin     = "/api/admin"
)

// The bounds of an answer. A list or a batch of grants has up to 1000 jobs with payloads of up to 256 KiB; every other
// answer is one object.
const (
	maxObject = 16 << 20
	maxList   = 512 << 20
)

// call is one call of the API.
type call struct {
	method string
	path   string
	query  url.Values
	body   any // nil = none
	// safe means that repeating the call is harmless, even if a server received it.
	safe bool
	// hold is how long the server may take in addition to Config.Timeout.
	hold  time.Duration
	limit int64 // of the answer in bytes; 0 = maxObject
}

// do makes the call, on another server if necessary, and decodes the answer into into, which may be nil.
func (c *Client) do(ctx context.Context, k call, into any) (status int, err error) {
	var body []byte
	if k.body != nil {
		if body, err = encode(k.body); err != nil {
			return 0, fmt.Errorf("encode request: %w", err)
		}
	}
	err = c.eachTry(ctx, k.safe, func(base string) error {
		status, err = c.try(ctx, base, k, body, into)
		return err
	})
	return status, err
}

// eachTry calls try with one server after another until it succeeds or must not be repeated.
func (c *Client) eachTry(ctx context.Context, safe bool, try func(base string) error) error {
	for n := 1; ; n++ {
		place, base := c.servers.current()
		err := try(base)
		if err == nil {
			return nil
		}
		again, received := repeatable(err)
		if again && !errors.Is(ctx.Err(), context.Canceled) { // then nothing is known about the server
			c.servers.leave(place)
		}
		if !again || received && !safe || n >= c.servers.tries() || ctx.Err() != nil {
			return err
		}
		if n%len(c.servers.urls) != 0 {
			continue // with a server that was not tried in this round
		}
		if !pause.For(ctx, roundPause(n/len(c.servers.urls), err)) {
			return err
		}
	}
}

// repeatable reports whether another try could succeed, and whether a server may have received the failed one.
func repeatable(err error) (again, received bool) {
	if u, ok := errors.AsType[*UnreachableError](err); ok {
		return true, u.MayHaveArrived
	}
	if e, ok := errors.AsType[*lessor.Error](err); ok && e.Code == lessor.CodeUnavailable {
		return true, e.OutcomeUnknown
	}
	return false, true
}

// roundPause is the pause after the n-th round, up to half of it random. It grows to what the server asked for, within
// lessor.RetryMax.
func roundPause(n int, err error) time.Duration {
	d := lessor.RetryPause(n)
	if e, ok := errors.AsType[*lessor.Error](err); ok {
		d = max(d, min(e.RetryAfter, lessor.RetryMax))
	}
	return d/2 + rand.N(d/2+1)
}

// buffers hold answers until they are decoded.
// A larger one is left to the garbage collector.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxBuffer = 4 << 20

// try sends the call to one server once.
func (c *Client) try(ctx context.Context, base string, k call, body []byte, into any) (status int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout+k.hold, errTimeout)
	defer cancel()
	resp, err := c.send(ctx, base, k, body, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	limit := k.limit
	if limit == 0 {
		limit = maxObject
	}
	buffer, _ := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Reset(); buffer.Cap() <= maxBuffer {
			buffers.Put(buffer)
		}
	}()
	_, err = buffer.ReadFrom(io.LimitReader(resp.Body, limit+1))
	data := buffer.Bytes()
	switch {
	case err != nil:
		return 0, unreachable(ctx, base, true, fmt.Errorf("read answer: %w", err))
	case int64(len(data)) > limit:
		return 0, fmt.Errorf("answer of %s is larger than %d MiB: request fewer entries at once", base, limit>>20)
	case into == nil:
		return resp.StatusCode, nil
	}
	if err := decode(data, into); err != nil { // it keeps no part of data
		return 0, fmt.Errorf("decode answer of %s to %s %s: %w", base, k.method, k.path, err)
	}
	switch v := into.(type) {
	case *lessor.Definition:
		v.ETag = resp.Header.Get("ETag")
	case *lessor.Tenant:
		v.ETag = resp.Header.Get("ETag")
	case *lessor.Class:
		v.ETag = resp.Header.Get("ETag")
	}
	return resp.StatusCode, nil
}

// send sends the request and returns an answer of status 2xx; every other answer is an error.
func (c *Client) send(
	ctx context.Context, base string, k call, body []byte, header http.Header,
) (*http.Response, error) {
	target := base + k.path
	if len(k.query) > 0 {
		target += "?" + k.query.Encode()
	}
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, target, content)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	maps.Copy(req.Header, header)
	req.Header.Set("User-Agent", c.agent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" && (c.tokenServer == "" || c.tokenServer == base) {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, key := range headers {
		if v, _ := ctx.Value(key).(string); v != "" {
			req.Header.Set(name, v)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(ctx, base, !neverSent(err), err)
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, refusal(base, k, resp)
	}
	return resp, nil
}

type (
	traceparentKey struct{}
	ifMatchKey     struct{}
)

// headers are the headers whose values come with the context of a call.
var headers = map[string]any{"Traceparent": traceparentKey{}, "If-Match": ifMatchKey{}}

// WithTraceparent returns a context whose calls carry the W3C trace context header traceparent. The server continues
// that trace and stores its id with the jobs that the calls submit.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}

// WithIfMatch returns a context whose calls change a definition, a tenant or a class only if it still has the ETag that
// an earlier answer had. Otherwise they fail with lessor.ErrPreconditionFailed and change nothing.
func WithIfMatch(ctx context.Context, etag string) context.Context {
	return context.WithValue(ctx, ifMatchKey{}, etag)
}
