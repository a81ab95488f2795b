// Package alert sends alerts to a webhook: a signed POST of the alert's JSON, repeated while the receiver cannot be
// reached. The server passes it every alert that it stores; an alert that cannot be delivered stays in the store.
//
//	Send ──► waiting ──due──► attempt ──2xx──► delivered
//	            ▲                │
//	            └── 5xx, 429, no connection, while RetryFor lasts
//	                             └── anything else, or no time left ──► dropped and reported
//
// An alert is sent when it is raised, restated and cleared. What it says now replaces what it said before, if that
// still waits or is being tried, so an older text never follows a newer one (TestClearedAlertIsNotRaisedAgain). This
// holds for one server: another server on the same store may still try the older text.
//
// A webhook could be used to reach the server's own network. So the sender uses https only, follows no redirects, uses
// no proxy from the environment, and connects only to public addresses. It checks the address that it dials, when it
// dials it, so that a host name which changes its address cannot evade the check. Hosts that are allowed by name are
// exempt from all rules but the one about redirects.
package alert

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
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
	// Dropped is called for each alert that is given up, with the reason. The error never contains the webhook's
	// address, which is often a secret.
	Dropped func(id string, why error)
}

// The reasons why alerts are given up.
var (
	ErrFull    = errors.New("too many alerts are waiting")
	ErrTooLong = errors.New("the alert is larger than 64 KiB")
	ErrStopped = errors.New("the server stopped before the alert was delivered")
)

// maxBody bounds one alert, which is a few hundred bytes.
const maxBody = 64 << 10

// Sender delivers alerts. Many goroutines may call Send; one calls Run.
type Sender struct {
	config Config
	client *http.Client
	ready  chan struct{}

	mu      sync.Mutex
	waiting []*delivery // oldest first, including the one that is being tried
	stopped bool        // Run has ended
}

// A delivery is what one alert says, and is not delivered yet.
type delivery struct {
	alert string
	id    string
	body  []byte
	tries int
	due   time.Time
	until time.Time
}

// New returns a sender. It refuses a webhook that is not safe.
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
	c.Waiting = cmp.Or(c.Waiting, 1000)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.RetryFor = cmp.Or(c.RetryFor, time.Hour)
	if c.Dropped == nil {
		c.Dropped = func(string, error) {}
	}
	return &Sender{config: c, client: newClient(allowed), ready: make(chan struct{}, 1)}, nil
}

// Send queues what an alert says, in place of what it said before. Send does not wait; if the queue is full or Run has
// ended, it drops the alert.
func (s *Sender) Send(id string, body []byte) {
	if len(body) > maxBody {
		s.config.Dropped(id, ErrTooLong)
		return
	}
	now := time.Now()
	d := &delivery{
		alert: id, id: deliveryID(id, body), body: slices.Clone(body), due: now, until: now.Add(s.config.RetryFor),
	}
	if err := s.queue(d); err != nil {
		s.config.Dropped(id, err)
		return
	}
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// queue adds a delivery, in place of another of its alert, or returns the reason why it cannot.
func (s *Sender) queue(d *delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := slices.IndexFunc(s.waiting, func(w *delivery) bool { return w.alert == d.alert })
	switch {
	case s.stopped:
		return ErrStopped
	case old >= 0:
		s.waiting[old] = d
	case len(s.waiting) >= s.config.Waiting:
		return ErrFull
	default:
		s.waiting = append(s.waiting, d)
	}
	return nil
}

// Run delivers until ctx is done, and then drops the alerts that still wait, and those that are sent later: the last
// commits of a server that stops may raise alerts.
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
	s.waiting, s.stopped = nil, true
	s.mu.Unlock()
	for _, d := range left {
		s.config.Dropped(d.alert, ErrStopped)
	}
}

// next returns the delivery that has been due for longest, or the time until one is due.
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

// settle removes a delivery after an attempt, or plans its next attempt. One that was replaced meanwhile is over.
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
	i := slices.Index(s.waiting, d)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if r.err != nil && i >= 0 {
		s.config.Dropped(d.alert, r.err)
	}
}
