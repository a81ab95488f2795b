package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"lessor/agent"
)

// The bounds of an answer, which no model reaches, and of the text of an error.
const (
	maxAnswer = 16 << 20
	maxError  = 2 << 10
)

// The pauses between tries, and the longest pause that a provider may ask for.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
	maxAsked   = 2 * time.Minute
	// beatEvery is the time between two beats in a pause: half of the 20 s after which the worker of a job with the
	// default ttl sends its next heartbeat, so that no heartbeat finds the job silent.
	beatEvery = 10 * time.Second
)

// failure is the error of a try that may be repeated.
type failure struct {
	err   error
	after time.Duration // as the provider asked
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// pauseAfter returns the pause after the n-th try: it doubles, is random, and is at least what the provider asked for.
func (f *failure) pauseAfter(n int) time.Duration {
	d := min(firstPause<<min(n-1, 10), maxPause)
	return max(d/2+rand.N(d/2), min(f.after, maxAsked))
}

var (
	errTimeout = errors.New("the answer took too long")
	errSilent  = errors.New("nothing came for too long")
	errTooBig  = fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)
)

// try sends the question once.
func (a *Adapter) try(ctx context.Context, body []byte, beat func()) (agent.Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := time.AfterFunc(a.cfg.Timeout, func() { cancel(errTimeout) })
	defer limit.Stop()
	silence := time.AfterFunc(a.cfg.Silence, func() { cancel(errSilent) })
	defer silence.Stop()
	arrived := func() {
		silence.Reset(a.cfg.Silence)
		if beat != nil {
			beat()
		}
	}
	resp, err := a.send(ctx, body, arrived)
	if err != nil {
		return agent.Reply{}, err
	}
	defer resp.Body.Close()
	content := &bounded{from: resp.Body, left: maxAnswer}
	var reply agent.Reply
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		reply, err = readStream(content, arrived)
	} else {
		reply, err = readWhole(content)
	}
	if err != nil && ctx.Err() != nil {
		return agent.Reply{}, a.broken(ctx, err)
	}
	return reply, a.hide(err)
}

// send sends the question and returns an answer of status 200. It calls arrived at the head of any answer: a provider
// that refuses is alive.
func (a *Adapter) send(ctx context.Context, body []byte, arrived func()) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	if key := a.key(); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := a.cfg.HTTP.Do(req)
	if err != nil {
		return nil, a.broken(ctx, err)
	}
	arrived()
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // a part of the text is better than none
	err = a.hide(fmt.Errorf("the provider answers %s: %s", resp.Status, strings.TrimSpace(string(text))))
	if code := resp.StatusCode; code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500 {
		return nil, &failure{err, retryAfter(resp.Header.Get("Retry-After"))}
	}
	return nil, err
}

// broken returns the reason why there is no answer. A failed connection may be tried again, unless ctx is done.
func (a *Adapter) broken(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout) || errors.Is(cause, errSilent):
		return &failure{err: cause}
	case cause != nil:
		return cause
	}
	return &failure{err: a.hide(err)}
}

// hide removes the key from an error, because a provider or a proxy may repeat it.
func (a *Adapter) hide(err error) error {
	key := a.key()
	if err == nil || key == "" || !strings.Contains(err.Error(), key) {
		return err
	}
	text := errors.New(strings.ReplaceAll(err.Error(), key, hiddenKey))
	if f, again := errors.AsType[*failure](err); again {
		return &failure{text, f.after}
	}
	return text
}

// retryAfter parses the header, which holds seconds or a date.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(min(seconds, math.MaxInt32)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return time.Until(at)
	}
	return 0
}

// bounded is a reader that fails at its limit.
type bounded struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooBig
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
