package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The headers of a delivery.
const (
	headerSignature = "X-Lessor-Signature"
	headerDelivery  = "X-Lessor-Delivery"
)

// The wait between attempts. It starts at a second, so that a restart of the receiver causes little delay, and ends at
// five minutes, so that an hour has about twenty attempts.
const (
	firstWait     = time.Second
	maxWait       = 5 * time.Minute
	maxRetryAfter = 15 * time.Minute // limit on the receiver's Retry-After
)

// result is the result of an attempt.
type result struct {
	err   error // nil = delivered
	again bool
	after time.Duration // the receiver's Retry-After
}

// attempt posts a delivery once.
func (s *Sender) attempt(ctx context.Context, d *delivery) result {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.config.Webhook, bytes.NewReader(d.body))
	if err != nil {
		return result{err: plain(err)}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "lessor")
	req.Header.Set(headerDelivery, d.id)
	if s.config.Secret != "" {
		req.Header.Set(headerSignature, Signature(s.config.Secret, d.body))
	}
	res, err := s.client.Do(req)
	if err != nil {
		return result{err: plain(err), again: !errors.Is(err, errNotPublic)}
	}
	_ = res.Body.Close() // the body does not matter, so it is not read
	switch code := res.StatusCode; {
	case code >= 200 && code < 300:
		return result{}
	case code >= 500 || code == http.StatusTooManyRequests:
		after := retryAfter(res.Header.Get("Retry-After"), time.Now())
		return result{err: fmt.Errorf("the webhook answered %d", code), again: true, after: after}
	case code >= 300 && code < 400:
		return result{err: fmt.Errorf("the webhook answered %d, and redirects are not followed", code)}
	default:
		return result{err: fmt.Errorf("the webhook answered %d", code)}
	}
}

// deliveryID returns the value of the header by which the receiver recognizes a repetition: the id of the alert and a
// hash of the body, because one alert is sent several times and says something else each time.
func deliveryID(alert string, body []byte) string {
	hash := sha256.Sum256(body)
	return alert + "-" + hex.EncodeToString(hash[:8])
}

// Signature returns the value of the header with which the receiver checks the sender of a body.
func Signature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// plain removes the address from an error.
func plain(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}

// backoff returns the wait after the n-th attempt: twice as long each time, and half of it random, so that many servers
// do not retry at the same time.
func backoff(n int) time.Duration {
	wait := maxWait
	if n < 10 {
		wait = min(maxWait, firstWait<<(n-1))
	}
	return wait/2 + rand.N(wait/2)
}

// retryAfter reads a Retry-After header, which has seconds or a date.
func retryAfter(header string, now time.Time) time.Duration {
	var d time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}
