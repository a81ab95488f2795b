package httpapi

import (
	"net/http"
	"net/netip"

	"lessor"
)

// Visitor is what a request for a page says about its sender.
type Visitor struct {
	Local   bool       // the loopback rule holds: it needs no token for what an operator may do
	From    netip.Addr // where the request comes from
	Secure  bool       // the connection is encrypted, at least up to a trusted proxy
	TraceID string     // under which faults are logged
}

// Pages answers requests outside the API, and reports whether it had an answer. The checks of every request come before
// it, and its answers do not count in the busy rating.
type Pages func(w http.ResponseWriter, r *http.Request, v Visitor) bool

// page passes a request on to the pages.
func (c *call) page() error {
	a := c.api
	if a.pages == nil {
		return errNoRoute
	}
	c.seen.Ignore()
	if !a.pages(c.w, c.r, Visitor{
		Local: a.tokens.Loaded() && a.isLocal(c.r), From: a.proxies.client(c.r), Secure: a.proxies.secure(c.r),
		TraceID: c.trace.id,
	}) {
		return errNoRoute
	}
	return nil
}

// Status is the HTTP status of a code; 500 for one that is unknown.
func Status(code lessor.Code) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	return http.StatusInternalServerError
}
