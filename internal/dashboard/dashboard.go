// Package dashboard shows the scheduler as web pages, on which people can also act.
//
// The server renders the pages with the scheduler's own methods and the visitor's own rights, so that a page shows and
// does what the API would. Pages work without JavaScript; with it they follow the scheduler (live.go).
//
// Text that callers store (payloads, names, messages) is always shown as text (TestStoredTextIsOnlyText). The cost of a
// page does not grow with the history (BenchmarkPages), and a page with many visitors is rendered once a second, not
// once per visitor. Sessions, bulk operations and the cache are bounded. The package decides nothing about jobs and
// leases.
//
// httpapi calls it after it has checked the Host header, the origin and the path.
package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/httpapi"
	"lessor/internal/recovery"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// Config holds the parts of a dashboard. Scheduler and Tokens are required.
type Config struct {
	Scheduler *scheduler.Scheduler
	Tokens    *token.Book
	Recovery  *recovery.Monitor  // nil = this node monitors no workspace
	Log       *slog.Logger       // nil = silent
	Fault     func(*fault.Fault) // receives panics; nil = they are not reported
	Version   string
}

// Dashboard answers requests for pages.
type Dashboard struct {
	scheduler *scheduler.Scheduler
	tokens    *token.Book
	recovery  *recovery.Monitor
	log       *slog.Logger
	fault     func(*fault.Fault)
	version   string
	templates struct{ pages, timeless templates }
	mux       *http.ServeMux
	sessions  sessions
	codes     codes
	history   history
	cache     cache
	bulk      bulks
	changes   atomic.Uint64 // grows with every commit
}

// New returns a dashboard. Its charts and bulk operations need Run.
func New(cfg Config) *Dashboard {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	d := &Dashboard{
		scheduler: cfg.Scheduler, tokens: cfg.Tokens, recovery: cfg.Recovery, log: cfg.Log, version: cfg.Version,
		bulk: newBulks(), fault: cfg.Fault,
	}
	d.templates.pages, d.templates.timeless = parse(true), parse(false)
	d.sessions.load = cfg.Scheduler.Session
	d.mux = d.newMux()
	return d
}

// Run fills the charts, expires the cache and runs bulk operations until ctx is done.
func (d *Dashboard) Run(ctx context.Context) {
	var all sync.WaitGroup
	keep := func(run func(context.Context)) {
		all.Go(func() { fault.Keep(ctx, fault.Dashboard, d.fault, run) })
	}
	keep(d.sample)
	keep(d.cache.expire)
	for range bulkWorkers {
		keep(d.runBulks)
	}
	all.Wait()
}

// Observe is called after every commit.
func (d *Dashboard) Observe(s scheduler.Stats) {
	if s.Err != nil {
		return
	}
	d.history.count(s)
	d.changes.Add(1)
}

// Serve answers a request for a page, and a browser's request for a page that does not exist. It reports whether it
// did.
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

// wantsPage reports whether a browser asks for a page, and not for a resource of the API.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/api/")
}

type visitorKey struct{}

// guard sets the security headers of every answer: a page loads nothing from other sites, runs no script or style but
// its own files, and cannot be shown in a frame.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
