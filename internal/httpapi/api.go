// Package httpapi is the HTTP API of the scheduler: it decodes requests, calls the scheduler, and encodes its answers.
//
// One table (routes.go) has every route with its scope, its limits and its types. The mux, the access check, the
// OpenAPI document and the tests are made from that table, so there is no route outside it.
//
// It promises: a refused request changes nothing; every answer that is not a success is a problem document with a
// stable code and the request's trace id (errors.go); no fault shows its detail to a caller, and each is logged once;
// nothing that a caller sends ends the process. It checks whether a field exists and has the right JSON type
// (decode.go); rules decides whether a value is allowed.
//
// A request passes these checks in order: Host, cross-origin, path and method, access, query, body, handler.
package httpapi

import (
	"log/slog"
	"net/http"
	"net/netip"

	"lessor"
	"lessor/internal/quota"
	"lessor/internal/recovery"
	"lessor/internal/scheduler"
	"lessor/internal/telemetry"
	"lessor/internal/token"
)

// Config configures an API. Scheduler, Tokens, Telemetry and Recovery are required.
type Config struct {
	Scheduler *scheduler.Scheduler
	Tokens    *token.Book
	Telemetry *telemetry.Telemetry
	Traces    *telemetry.Traces // nil = none
	Recovery  *recovery.Monitor
	Log       *slog.Logger // nil = no log
	// Level is the level of the log, which admins can change; nil = a level without effect.
	Level *slog.LevelVar
	// ListenAddr is where the server listens, as configured. It decides whether the loopback rule holds and which Host
	// headers are accepted.
	ListenAddr string
	// AuthRequired ends the loopback rule: every caller needs a token.
	AuthRequired bool
	// Hosts are further names of this server, without port. They end the loopback rule: a server with such a name is
	// reached through a proxy, whose callers are not on this machine.
	Hosts []string
	// TrustedProxies are the networks of proxies whose X-Forwarded-For and X-Forwarded-Proto count.
	TrustedProxies []netip.Prefix
	// PayloadLimit bounds the body of a submission in bytes; 0 = 256 KiB.
	PayloadLimit int64
	// Version is shown in the OpenAPI document.
	Version string
	// Pages answers requests outside the API; nil = 404.
	Pages Pages
}

// API answers HTTP requests.
type API struct {
	scheduler *scheduler.Scheduler
	tokens    *token.Book
	telemetry *telemetry.Telemetry
	traces    *telemetry.Traces
	recovery  *recovery.Monitor
	log       *slog.Logger
	level     *slog.LevelVar
	hosts     hosts
	proxies   proxies
	tokenless bool // the loopback rule holds
	origins   *http.CrossOriginProtection
	mux       *http.ServeMux
	document  []byte // OpenAPI
	pages     Pages
	eventIDs  eventIDs
	polls     *quota.Limit
	streams   *quota.Limit
	bodies    *quota.Limit // in bytes
}

const defaultPayloadLimit = 256 << 10

// New returns the API, ready to serve.
func New(cfg Config) *API {
	if cfg.PayloadLimit == 0 {
		cfg.PayloadLimit = defaultPayloadLimit
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Level == nil {
		cfg.Level = new(slog.LevelVar)
	}
	a := &API{
		scheduler: cfg.Scheduler, tokens: cfg.Tokens, telemetry: cfg.Telemetry, traces: cfg.Traces,
		recovery: cfg.Recovery, log: cfg.Log, level: cfg.Level,
		hosts: newHosts(cfg.ListenAddr, cfg.Hosts), origins: http.NewCrossOriginProtection(),
		proxies: cfg.TrustedProxies,
		polls:   quota.New(maxPolls), streams: quota.New(maxStreams), bodies: quota.New(maxBodies), pages: cfg.Pages,
		eventIDs: newEventIDs(),
	}
	a.tokenless = Tokenless(cfg.ListenAddr, cfg.Hosts, cfg.AuthRequired)
	table := routes(cfg.PayloadLimit)
	a.mux = newMux(table)
	a.document = openAPI(table, cfg.Version)
	return a
}

// The headers of every answer. Nobody changes the slices.
var noSniff, noStore = []string{"nosniff"}, []string{"no-store"}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	c := &call{api: a, r: r, seen: a.telemetry.Begin(), trace: continueTrace(r.Header)}
	c.w = &writer{ResponseWriter: rw, call: c}
	defer c.end()
	defer c.rescue()
	h := c.w.Header()
	h["Traceparent"] = []string{c.trace.parent()}
	h["X-Content-Type-Options"], h["Cache-Control"] = noSniff, noStore
	if err := a.admit(r); err != nil {
		c.refuse(err)
		return
	}
	a.mux.ServeHTTP(c.w, r)
}

// admit makes the checks that hold for every request.
func (a *API) admit(r *http.Request) error {
	if !a.hosts.accept(r.Host) {
		return &lessor.Error{
			Code:   lessor.CodeForbidden,
			Detail: "this server is not known by the name in the Host header",
		}
	}
	if err := a.origins.Check(r); err != nil {
		return &lessor.Error{Code: lessor.CodeForbidden, Detail: "cross-origin requests from browsers are refused"}
	}
	if !isClean(r.URL.EscapedPath()) {
		return errNoRoute
	}
	return nil
}
