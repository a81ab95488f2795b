// Package alert sends alerts to a webhook: a POST of the alert's JSON, signed, and tried again while the other side is
// out of reach. The server hands it every alert that it stores; what is not delivered stays in the store.
//
//	Send ──► waiting ──due──► attempt ──2xx──► delivered
//	            ▲                │
//	            └── 5xx, 429, no connection, while RetryFor lasts
//	                             └── anything else, or no time left ──► dropped, counted and told
//
// A webhook is a way into the network of the server for whoever may set it, so: https only, no redirects, no proxy from
// the environment, and no connection to an address that is not public, decided when the connection is made and for the
// address that is really dialled, so that a name which changes its address is no way around. Hosts that are allowed by
// name are free of these rules, but for redirects.
package alert

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config says where alerts go. Zero values mean the defaults.
type Config struct {
	Webhook    string
	Secret     string        // signs each body; empty = unsigned
	AllowHosts []string      // may be reached by http and at any address
	Waiting    int           // alerts that may wait at once, 1000
	Timeout    time.Duration // of one attempt, 10 s
	RetryFor   time.Duration // from Send on, 1 h
	// Dropped is told of each alert that is given up, and why. The error never holds the webhook's address, which is
	// often a secret.
	Dropped func(id string, why error)
}

// Why alerts are given up.
var (
	ErrFull    = errors.New("too many alerts are waiting")
	ErrTooLong = errors.New("the alert is larger than 64 KiB")
	ErrStopped = errors.New("the server stopped before the alert was delivered")
)

// maxBody bounds one alert, which is a few hundred bytes.
const maxBody = 64 << 10

// Sender delivers alerts. Send may be called by many at once; one goroutine calls Run.
type Sender struct {
	config  Config
	client  *http.Client
	ready   chan struct{}
	dropped atomic.Int64

	mu      sync.Mutex
	waiting []*delivery // oldest first, the one that is being tried among them
}

// A delivery is one alert on its way.
type delivery struct {
	id    string
	body  []byte
	tries int
	due   time.Time
	until time.Time
}

// New returns a sender, or says what is wrong with the webhook.
func New(c Config) (*Sender, error) {
	u, err := url.Parse(c.Webhook)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("the webhook is not a URL with a host")
	}
	allowed := slices.ContainsFunc(c.AllowHosts, func(host string) bool {
		return strings.EqualFold(strings.Trim(host, "[]"), u.Hostname())
	})
	if u.Scheme != "https" && (u.Scheme != "http" || !allowed) {
		return nil, errors.New("the webhook must be https, or http to a host that is allowed by name")
	}
	if c.Waiting == 0 {
		c.Waiting = 1000
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.RetryFor == 0 {
		c.RetryFor = time.Hour
	}
	if c.Dropped == nil {
		c.Dropped = func(string, error) {}
	}
	return &Sender{config: c, client: newClient(allowed), ready: make(chan struct{}, 1)}, nil
}

// Send hands over an alert under an id by which the other side can tell repetitions. It does not wait; an alert that
// cannot be kept is dropped.
func (s *Sender) Send(id string, body []byte) {
	if len(body) > maxBody {
		s.drop(id, ErrTooLong)
		return
	}
	now := time.Now()
	s.mu.Lock()
	full := len(s.waiting) >= s.config.Waiting
	if !full {
		s.waiting = append(s.waiting, &delivery{id: id, body: slices.Clone(body), due: now, until: now.Add(s.config.RetryFor)})
	}
	s.mu.Unlock()
	if full {
		s.drop(id, ErrFull)
		return
	}
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Dropped returns how many alerts were given up.
func (s *Sender) Dropped() int64 { return s.dropped.Load() }

func (s *Sender) drop(id string, why error) {
	s.dropped.Add(1)
	s.config.Dropped(id, why)
}

// Run delivers until ctx is done, and drops what then still waits.
func (s *Sender) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		d, next := s.next(time.Now())
		if d != nil {
			s.settle(ctx, d, s.attempt(ctx, d))
			continue
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
		case <-s.ready:
		case <-timer.C:
		}
	}
	s.mu.Lock()
	left := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	for _, d := range left {
		s.drop(d.id, ErrStopped)
	}
}

// next returns the delivery that has been due for longest, or in how long one will be.
func (s *Sender) next(now time.Time) (d *delivery, in time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in = s.config.RetryFor
	for _, w := range s.waiting {
		if d == nil || w.due.Before(d.due) {
			d = w
		}
	}
	if d == nil {
		return nil, in
	}
	if wait := d.due.Sub(now); wait > 0 {
		return nil, wait
	}
	return d, 0
}

// settle decides what becomes of a delivery after an attempt.
func (s *Sender) settle(ctx context.Context, d *delivery, r result) {
	if ctx.Err() != nil && r.err != nil {
		return // Run drops it
	}
	d.tries++
	if r.err != nil && r.again {
		d.due = time.Now().Add(max(backoff(d.tries), r.after))
		if d.due.Before(d.until) {
			return
		}
	}
	s.mu.Lock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w *delivery) bool { return w == d })
	s.mu.Unlock()
	if r.err != nil {
		s.drop(d.id, r.err)
	}
}
