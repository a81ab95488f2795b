// Package dashboard is the scheduler as web pages: it shows its state to people and lets them act on it.
//
// Pages are rendered here, from the scheduler's own methods and with the visitor's own rights, so that what a page shows and does is
// what the API would show and do. They work without JavaScript; with it they follow the scheduler (live.go).
//
// It promises: whatever callers store (payloads, names, messages) is shown as text; no page's cost grows with the history, and a page that
// many look at is rendered once a second, not once a visitor; sessions, bulk operations and streams are bounded. It decides
// nothing about jobs and leases.
//
// Called by httpapi, which has checked the Host header, the origin and the path before.
package dashboard

import (
	"context"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"lessor"
	"lessor/internal/httpapi"
	"lessor/internal/quota"
	"lessor/internal/recovery"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// Config is what a dashboard is made of. Scheduler and Tokens are required.
type Config struct {
	Scheduler *scheduler.Scheduler
	Tokens    *token.Book
	Recovery  *recovery.Monitor // nil = this node judges no workspace
	Log       *slog.Logger      // nil = silent
	Version   string
}

// Dashboard answers requests for pages.
type Dashboard struct {
	scheduler *scheduler.Scheduler
	tokens    *token.Book
	recovery  *recovery.Monitor
	log       *slog.Logger
	version   string
	templates map[string]*template.Template
	mux       *http.ServeMux
	sessions  sessions
	codes     codes
	history   history
	cache     cache
	bulk      bulks
	streams   *quota.Limit
	changes   atomic.Uint64 // grows with every commit
}

// New returns a dashboard. Run feeds its charts and works off bulk operations.
func New(cfg Config) *Dashboard {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	d := &Dashboard{
		scheduler: cfg.Scheduler, tokens: cfg.Tokens, recovery: cfg.Recovery, log: cfg.Log, version: cfg.Version,
		templates: parse(), bulk: newBulks(), streams: quota.New(maxStreams),
	}
	d.sessions.load = cfg.Scheduler.Session
	d.mux = d.newMux()
	return d
}

// Run works until ctx is done.
func (d *Dashboard) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { d.sample(ctx) })
	all.Go(func() { d.cache.expire(ctx) })
	for range bulkWorkers {
		all.Go(func() { d.workOff(ctx) })
	}
	all.Wait()
}

// Observe is told about every commit.
func (d *Dashboard) Observe(s scheduler.Stats) {
	if s.Err != nil {
		return
	}
	d.history.count(s)
	d.changes.Add(1)
}

// Serve answers a request, if it is for a page, or of somebody who looks for one that there is not.
func (d *Dashboard) Serve(w http.ResponseWriter, r *http.Request, v httpapi.Visitor) bool {
	var handler http.Handler = d.mux
	if _, pattern := d.mux.Handler(r); pattern == "" {
		if !wantsPage(r) {
			return false
		}
		handler = d.answer(token.Public, func(*visit) error { return errNoPage })
	}
	guard(w.Header())
	handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, v)))
	return true
}

var errNoPage = &lessor.Error{Code: lessor.CodeRouteNotFound, Detail: "There is no page at this address."}

// wantsPage reports whether a browser asks, and not for something of the API.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/api/")
}

type visitorKey struct{}

// guard sets what holds for every answer: nothing is loaded from elsewhere, no script or style but our own files runs, and nobody
// shows us in a frame.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
